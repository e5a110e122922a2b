/* Losses by question: one system at a time, the worst first. */
(() => {
  const part = raggs.data('losses');
  const choose = document.getElementById('losses-system');
  const host = document.getElementById('losses-table');
  const draw = () => {
    const at = Number(choose.value);
    const rows = part.queries.filter((each) => each.losses[at]).map((each) => ({ ...each, lost: each.losses[at], all: each.losses[at].reduce((sum, one) => sum + one, 0) }));
    raggs.table(host, {
      label: 'Losses of ' + part.systems[at] + ' by question', rows, sort: 1,
      columns: [
        { title: 'question', value: (row) => row.qid, draw: (row) => raggs.asks(row.qid, row.text) },
        { title: 'lost', figure: true, value: (row) => row.all, draw: (row) => raggs.number(row.all) },
        ...part.names.map((title, place) => ({ title, figure: true, value: (row) => row.lost[place], draw: (row) => raggs.number(row.lost[place]) })),
      ],
    });
  };
  choose.addEventListener('change', draw);
  draw();
})();
