/* Losses by query: one system at a time, the largest loss first. */
(() => {
  const part = raggs.data('losses');
  const choose = document.getElementById('losses-system');
  if (!choose) return; // nothing is lost
  const cell = (value) => value ? raggs.number(value / 1000) : raggs.make('span', { className: 'empty', textContent: '0' });
  const draw = () => {
    const at = Number(choose.value);
    const rows = part.queries.map((qid, place) => ({ qid, lost: part.losses[at][place] })).filter((row) => row.lost).map((row) => ({ ...row, all: row.lost.reduce((sum, one) => sum + one, 0) }));
    raggs.table(document.getElementById('losses-table'), {
      label: 'Losses of ' + part.systems[at] + ' by query', rows, sort: 1,
      columns: [
        { title: 'query', value: (row) => row.qid, draw: (row) => raggs.asks(row.qid) },
        { title: 'lost', figure: true, value: (row) => row.all, draw: (row) => cell(row.all) },
        ...[...part.names.entries()].reverse().map(([place, title]) => ({ title, figure: true, value: (row) => row.lost[place], draw: (row) => cell(row.lost[place]) })),
      ],
    });
  };
  choose.addEventListener('change', draw);
  draw();
})();
