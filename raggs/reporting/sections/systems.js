/* Wins and losses by query: one measure, one system against the baseline. */
(() => {
  const part = raggs.data('systems');
  const find = (name) => document.getElementById('systems-' + name);
  const [measure, system, outcome, search, count, host] = ['measure', 'system', 'outcome', 'find', 'count', 'table'].map(find);
  const base = part.systems.indexOf(part.baseline);
  const words = part.queries.map((qid) => raggs.plain(qid + ' ' + raggs.text(qid)));
  const SAME = 5e-5;
  let table, all = [];

  const filter = () => {
    const wanted = raggs.plain(search.value.trim());
    const which = outcome ? outcome.value : '';
    const shown = all.filter((row) => (!which || row.outcome === which) && (!wanted || words[row.at].includes(wanted)));
    count.textContent = raggs.count(shown.length);
    table.show(shown);
  };
  const draw = () => {
    const at = Number(measure.value), mine = Number(system.value);
    const values = part.values[at], sign = part.lower.includes(part.measures[at]) ? -1 : 1;
    all = part.queries.map((qid, place) => {
      const own = values[mine][place], other = base < 0 ? null : values[base][place];
      const change = own === null || other === null ? null : own - other;
      const good = change === null ? '' : Math.abs(change) < SAME ? 'equal' : change * sign > 0 ? 'better' : 'worse';
      return { at: place, qid, own, other, change, outcome: good };
    });
    const figures = [{ title: part.systems[mine], figure: true, value: (row) => row.own, draw: (row) => raggs.number(row.own) }];
    if (base >= 0) {
      figures.unshift({ title: part.systems[base], figure: true, value: (row) => row.other, draw: (row) => raggs.number(row.other) });
      figures.push({ title: 'difference', figure: true, value: (row) => row.change, draw: (row) => raggs.make('span', {
        textContent: raggs.signed(row.change), className: { better: 'gain', worse: 'fall' }[row.outcome] || '' }) });
    }
    table = raggs.table(host, {
      label: part.measures[at] + ' by query', rows: [], sort: figures.length, down: base < 0,
      columns: [{ title: 'query', value: (row) => row.qid, draw: (row) => raggs.asks(row.qid) }, ...figures],
    });
    filter();
  };
  for (const each of [measure, system]) each.addEventListener('change', draw);
  if (outcome) outcome.addEventListener('change', filter);
  search.addEventListener('input', filter);
  draw();
})();
