/* The questions: a table that is filtered, and the sheet of the one that is asked for by the address (#question=...). */
(() => {
  const part = raggs.data('questions');
  const find = (name) => document.getElementById('questions-' + name);
  const [search, language, kind, system, count, one] = ['find', 'language', 'kind', 'system', 'count', 'one'].map(find);
  const plain = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  const rows = part.lines.map((line, at) => ({ ...line, at, words: plain(line.id + ' ' + line.text) }));
  const places = new Map(rows.map((row) => [row.id, row.at]));
  const [some, losses, ranked] = [part.systems.length > 1, rows.some((row) => row.losses.some((each) => each !== null)), rows.some((row) => row.doubt !== null)];
  let shown = rows, open = -1;

  const known = (values) => values.filter((value) => value !== null);
  const spread = (row) => { const values = known(row.scores); return values.length > 1 ? Math.max(...values) - Math.min(...values) : null; };
  const worst = (row) => {
    const chosen = system && system.value !== '' ? [Number(system.value)] : part.systems.map((_, at) => at);
    return chosen.reduce((most, at) => (row.losses[at] !== null && (most === null || row.losses[at] > row.losses[most]) ? at : most), null);
  };
  const lost = (row) => { const at = worst(row); return at === null ? null : row.losses[at]; };
  const columns = [
    { title: 'question', value: (row) => row.at, draw: (row) => raggs.asks(row.id, row.text) },
    ...(losses ? [{ title: 'worst loss', figure: true, value: lost, draw: (row) => raggs.make('span', {}, raggs.number(lost(row), 3), ...(some && lost(row) ? [raggs.make('small', { className: 'range', textContent: ' ' + part.systems[worst(row)] })] : [])) }] : []),
    ...(some ? [{ title: 'systems differ', figure: true, value: spread, draw: (row) => raggs.number(spread(row), 3) }] : []),
    ...(ranked ? [{ title: 'doubt', figure: true, value: (row) => row.doubt, draw: (row) => raggs.number(row.doubt, 1) }] : []),
    { title: 'grade 4 or 5', figure: true, value: (row) => row.good, draw: (row) => raggs.number(row.good, 0) },
    { title: 'pool', figure: true, value: (row) => row.pool, draw: (row) => String(row.pool) },
  ];

  const choices = (box, select, name) => {
    const found = [...new Set(rows.map((row) => row[name]))].filter(Boolean).sort();
    box.hidden = found.length < 2;
    select.replaceChildren(...['', ...found].map((value) => raggs.make('option', { value, textContent: value || 'all' })));
  };
  choices(find('languages'), language, 'language');
  choices(find('kinds'), kind, 'kind');

  const table = raggs.table(find('table'), { label: 'All questions', columns, rows, sort: losses ? 1 : 0, down: losses });
  const filter = () => {
    const wanted = plain(search.value).split(/\s+/).filter(Boolean);
    shown = rows.filter((row) => (!language.value || row.language === language.value) && (!kind.value || row.kind === kind.value) && wanted.every((word) => row.words.includes(word)));
    count.textContent = shown.length + (shown.length === 1 ? ' question' : ' questions');
    table.show(shown);
    step();
  };
  search.addEventListener('input', filter);
  for (const each of [language, kind, system]) if (each) each.addEventListener('change', filter);

  /* --- one question: the numbers of its packed sheet become what `sheets.draw` takes --- */
  function unpack(line) {
    const [rewrite, answer, facts, top, stopped, pool, packed, lists] = JSON.parse(part.sheets[line.at]);
    const made = packed.map(([number, grade = 0, by = 0, rank = 0, low, high, sure, locked = 0, score = 0, sigma = 0, twin = 0, said = '', cut = '', words = [], below = [], votes = '']) => {
      const [id, title, where, text, more] = part.passages[number];
      const place = rank ? { rank, low, high, sure: sure < 0 ? null : sure, locked: Boolean(locked), score, sigma } : { pooled: low || null };
      return { id, title, where, text, more, grade: grade || null, by: part.names[by], ...place, twin: twin ? part.passages[twin - 1][0] : null, said, votes, cut, below: below.map((place) => part.passages[packed[place][0]][0]), words: words.map(([who, given, note, decided]) => ({ who, grade: given || null, note, decided: Boolean(decided) })) };
    });
    const hits = (each) => each.map((hit) => (hit < 0 ? part.passages[-1 - hit][0] : hit));
    return { id: line.id, text: line.text, rewrite, language: line.language, kind: line.kind, answer, facts, top, doubt: line.doubt, stopped, pool, rows: made, lists: lists.map(([name, found, each]) => ({ system: part.names[name], found, hits: hits(each) })) };
  }
  function scored(line) {
    if (!known(line.scores).length) return '';
    const cells = (tag, values) => values.map((value) => raggs.make(tag, { textContent: value, ...(tag === 'th' ? { scope: 'col' } : { className: 'figure' }) }));
    const names = raggs.make('tr', {}, ...cells('th', [part.measure, ...part.systems]));
    const values = raggs.make('tr', {}, raggs.make('th', { textContent: 'score', scope: 'row' }), ...cells('td', line.scores.map((value) => raggs.number(value, 3))));
    const below = raggs.make('tr', {}, raggs.make('th', { textContent: 'lost', scope: 'row' }), ...cells('td', line.losses.map((value) => raggs.number(value, 3))));
    const body = raggs.make('tbody', {}, values, ...(known(line.losses).length ? [below] : []));
    return raggs.make('div', { className: 'wide scored', tabIndex: 0, attributes: { role: 'region', 'aria-label': 'Scores of this question' } }, raggs.make('table', {}, raggs.make('thead', {}, names), body));
  }
  function step() {
    const place = shown.findIndex((row) => row.at === open);
    find('before').disabled = place <= 0;
    find('next').disabled = place < 0 || place === shown.length - 1;
  }
  const go = (by) => { const next = shown[shown.findIndex((row) => row.at === open) + by]; if (next) location.hash = 'question=' + encodeURIComponent(next.id); };
  find('before').addEventListener('click', () => go(-1));
  find('next').addEventListener('click', () => go(1));
  find('back').addEventListener('click', () => { location.hash = 'questions'; search.focus({ preventScroll: true }); });

  filter();
  raggs.listen((qid) => {
    if (!places.has(qid)) return;
    open = places.get(qid);
    const line = rows[open];
    find('id').textContent = line.id;
    find('asked').textContent = line.text || line.id;
    find('sheet').replaceChildren(scored(line), sheets.draw(unpack(line), sheets.ENGLISH, 'h4', part.depth));
    one.hidden = false;
    step();
    find('asked').focus({ preventScroll: true });
    one.scrollIntoView({ block: 'start' });
  });
})();
