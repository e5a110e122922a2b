/* The queries: a table that is filtered, and the query that the address names (#question=...), whose sheet is unpacked
   when it is opened. */
(() => {
  const part = raggs.data('questions');
  const { make, plain } = raggs;
  const find = (name) => document.getElementById('questions-' + name);
  const [search, language, kind, system, least, count, one, unknown, help] = ['find', 'language', 'kind', 'system', 'least', 'count', 'one', 'unknown', 'help'].map(find);
  const [lowest, highest] = part.scale;
  const rows = part.lines.map((line, at) => ({ ...line, at, words: plain(line.id + ' ' + line.text) }));
  const places = new Map(rows.map((row) => [row.id, row.at]));
  const [some, losses, ranked] = [part.systems.length > 1, rows.some((row) => row.losses.some((each) => each !== null)), rows.some((row) => row.doubt !== null)];
  const stops = new Set(part.stops), texts = part.passages.some(([, , , text]) => text);
  let shown = rows, open = -1, pair = part.pair, column = 0;

  const known = (values) => values.filter((value) => value !== null);
  const spread = (row) => { const values = known(row.scores); return values.length > 1 ? Math.max(...values) - Math.min(...values) : null; };
  const worst = (row) => {
    const chosen = system && system.value !== '' ? [Number(system.value)] : part.systems.map((_, at) => at);
    return chosen.reduce((most, at) => (row.losses[at] !== null && (most === null || row.losses[at] > row.losses[most]) ? at : most), null);
  };
  const lost = (row) => { const at = worst(row); return at === null ? null : row.losses[at]; };
  const columns = [
    { title: 'query', value: (row) => row.at, draw: (row) => raggs.asks(row.id) },
    ...(losses ? [{ title: some ? 'largest loss' : 'loss', figure: true, value: lost, draw: (row) => make('span', {}, raggs.number(lost(row)), ...(some && lost(row) ? [make('small', { className: 'whose', textContent: part.systems[worst(row)] })] : [])) }] : []),
    ...(some ? [{ title: 'best − worst', figure: true, value: spread, draw: (row) => raggs.number(spread(row)) }] : []),
    ...(ranked ? [{ title: 'inversions', figure: true, minor: true, value: (row) => row.doubt, draw: (row) => raggs.number(row.doubt, 1) }] : []),
    { title: 'relevant', figure: true, minor: true, value: (row) => row.good, draw: (row) => raggs.number(row.good, 0) },
    { title: 'pool', figure: true, minor: true, value: (row) => row.pool, draw: (row) => String(row.pool) },
  ];

  const choices = (box, select, name) => {
    const found = [...new Set(rows.map((row) => row[name]))].filter(Boolean).sort();
    box.hidden = found.length < 2;
    select.replaceChildren(...['', ...found].map((value) => make('option', { value, textContent: value || 'all' })));
  };
  choices(find('languages'), language, 'language');
  choices(find('kinds'), kind, 'kind');

  const table = raggs.table(find('table'), { label: 'All queries', columns, rows: [], sort: losses ? 1 : 0, down: losses, ordered: (found) => { shown = found; step(); } });
  const filter = () => {
    const wanted = plain(search.value).split(/\s+/).filter(Boolean), from = Number(least?.value || 0);
    table.show(rows.filter((row) => (!language.value || row.language === language.value) && (!kind.value || row.kind === kind.value) && (!from || lost(row) >= from) && wanted.every((word) => row.words.includes(word))));
    count.textContent = shown.length === rows.length ? raggs.count(rows.length) : raggs.whole(shown.length) + ' of ' + raggs.count(rows.length);
  };
  for (const each of [search, least]) {
    each?.addEventListener('input', filter);
    each?.addEventListener('keydown', (event) => {
      if (!['Enter', 'Escape'].includes(event.key) || event.isComposing || !shown.length) return;
      event.preventDefault();
      table.move(0);
    });
  }
  for (const each of [language, kind, system]) each?.addEventListener('change', filter);
  if (some && losses) system.addEventListener('change', () => { find('table').querySelectorAll('.sort')[1].textContent = system.value ? 'loss' : 'largest loss'; });
  /* Queries open with the system whose losses are shown. */
  for (const each of [system, document.getElementById('losses-system')]) each?.addEventListener('change', () => {
    const name = each.value && each.selectedOptions[0].text;
    if (name && !pair.includes(name)) pair = [pair[0], name];
  });

  /* --- words of the query in a text: without accents, in any case, also with a short ending, but no stop words --- */
  const WORD = /([\p{L}\p{M}\p{N}]+)/u, UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
  const ENDING = 3, STEM = 4; // characters that two forms of a word may differ by, and that they share at least
  const segments = (text) => [...new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text)].map((one) => one.segment);
  const words = (text) => text.split(WORD).flatMap((each) => (UNSPACED.test(each) && 'Segmenter' in Intl ? segments(each) : [each]));
  const termsOf = (text) => [...new Set(words(text).map(plain).filter((word) => WORD.test(word) && !stops.has(word)))];
  const alike = (one, other) => one === other || (Math.min(one.length, other.length) >= STEM && Math.abs(one.length - other.length) <= ENDING && (one.startsWith(other) || other.startsWith(one)));
  const marked = (text, terms) => words(text).map((each) => {
    const word = plain(each);
    return terms.some((term) => alike(term, word)) ? make('mark', { textContent: each }) : each;
  });

  /* --- one query: the numbers of its packed sheet become what `sheets.draw` takes --- */
  function unpack(line) {
    const [rewrite, answer, facts, top, stopped, pool, packed, lists] = JSON.parse(part.sheets[line.at]);
    const made = packed.map(([number, given = 0, by = 0, rank = 0, low, high, sure, locked = 0, score = 0, sigma = 0, twin = 0, said = '', cut = '', words = [], below = [], votes = '']) => {
      const [id, title, where, text, more] = part.passages[number];
      const place = rank ? { rank, low, high, sure: sure < 0 ? null : sure, locked: Boolean(locked), score, sigma } : { pooled: low || null };
      const grade = given ? given - 1 : null, shade = given ? 1 + Math.round(4 * (grade - lowest) / (highest - lowest)) : null;
      return { id, title, where, text, more, grade, shade, by: part.names[by], ...place, twin: twin ? part.passages[twin - 1][0] : null, said, votes, cut, below: below.map((place) => part.passages[packed[place][0]][0]), words: words.map(([who, given, note, decided]) => ({ who, grade: given || null, note, decided: Boolean(decided) })) };
    });
    const hits = (each) => each.map((hit) => (hit < 0 ? part.passages[-1 - hit][0] : hit));
    return { id: line.id, text: line.text, rewrite, language: line.language, kind: line.kind, answer, facts, top, doubt: line.doubt, stopped: part.names[stopped], pool, rows: made, lists: lists.map(([name, found, each]) => ({ system: part.names[name], found, hits: hits(each) })) };
  }
  function scored(line) {
    if (!known(line.scores).length) return '';
    const cells = (tag, values) => values.map((value) => make(tag, { textContent: value, ...(tag === 'th' ? { scope: 'col' } : { className: 'figure' }) }));
    const names = make('tr', {}, ...cells('th', [part.measure, ...part.systems]));
    const values = make('tr', {}, make('th', { textContent: 'score', scope: 'row' }), ...cells('td', line.scores.map((value) => raggs.number(value))));
    const below = make('tr', {}, make('th', { textContent: 'lost', scope: 'row' }), ...cells('td', line.losses.map((value) => raggs.number(value))));
    const body = make('tbody', {}, values, ...(known(line.losses).length ? [below] : []));
    return make('div', { className: 'wide scored', tabIndex: 0, attributes: { role: 'region', 'aria-label': 'Scores of this query' } }, make('table', {}, make('thead', {}, names), body));
  }
  const grade = ({ grade: value, shade }) => make('span', {}, make('span', { className: 'unseen', textContent: value === null ? 'no ' : 'grade ' }), make('span', { className: 'sheet-grade sheet-g' + (shade ?? 0), textContent: value ?? '·' }), ...(value !== null ? [] : [make('span', { className: 'unseen', textContent: ' grade' })]));
  function passage(row, rank, terms, ...notes) {
    const title = make('span', { className: 'title' }, make('bdi', {}, ...marked(row.title || row.id, terms)), make('small', {}, ...(row.title ? [make('bdi', { textContent: row.id }), ' '] : []), ...notes));
    const box = make('details', {}, make('summary', {}, make('span', { className: 'rank', textContent: rank }), grade(row), title));
    box.addEventListener('toggle', () => {
      if (box.children.length > 1) return;
      box.append(make('div', { className: 'passage', dir: 'auto' }, ...(row.text ? marked(row.text, terms) : [row.outside && texts ? 'No text in this file, because the passage is not in the pool.' : 'No text in this file.']), ...(row.more ? [make('small', { textContent: '… ' + raggs.whole(row.more) + ' more characters' })] : [])));
    });
    return make('li', {}, box);
  }

  const score = (line, name) => line.scores[part.systems.indexOf(name)];

  /* Which of two systems has the better list of a query, in one sentence. */
  function verdict(line, two) {
    const values = two.map((name) => score(line, name));
    if (values.length < 2 || values.some((value) => value === null || value === undefined)) return two.length ? 'Passages of ' + two.join(' and ') + ', and the best passages.' : 'The best passages.';
    const gap = raggs.number(Math.abs(values[0] - values[1]));
    if (Number(gap) === 0) return two.join(' and ') + ' score the same here.';
    const [better, worse] = values[0] > values[1] ? two : [two[1], two[0]];
    return better + ' scores ' + gap + ' more than ' + worse + ' on this query (' + part.measure + ').';
  }

  /* The systems with the highest and the lowest score, with a button that shows them; nothing if the shown ones score the
     same as these. */
  function extremes(line, two, show) {
    const order = part.systems.filter((_, at) => line.scores[at] !== null).sort((one, other) => score(line, other) - score(line, one));
    const ends = [order[0], order.at(-1)];
    if (order.length < 3 || score(line, ends[0]) === score(line, ends[1]) || ends.every((end) => two.some((name) => score(line, name) === score(line, end)))) return [];
    const [best, least] = ends.map((end) => order.filter((name) => score(line, name) === score(line, end)).join(', ') + ' (' + raggs.number(score(line, end)) + ')');
    const said = 'Highest score on this query: ' + best + '. Lowest: ' + least + '. ';
    const button = make('button', { type: 'button', className: 'screen', textContent: 'Compare ' + ends.join(' and ') });
    button.addEventListener('click', () => { show(ends); find('compare').querySelector('select').focus(); });
    return [make('p', {}, said, button)];
  }

  /* Two lists and the golden order side by side; on a narrow screen one of them at a time. */
  function compare(line, sheet) {
    const of = (hit) => (typeof hit === 'number' ? sheet.rows[hit] : { id: hit, title: '', text: '', grade: null, outside: true });
    const lists = new Map(sheet.lists.map((each) => [each.system, { ...each, ids: each.hits.map((hit) => of(hit).id) }]));
    const names = [...lists.keys()], terms = termsOf(line.text + ' ' + sheet.rewrite);
    const two = [...new Set([...pair.filter((name) => lists.has(name)), ...names])].slice(0, 2);
    const redraw = (names) => { pair = names; find('compare').replaceChildren(compare(line, sheet)); };
    const head = (place) => {
      if (names.length < 2) return make('h4', { textContent: two[place] });
      const select = make('select', { attributes: { 'aria-label': 'System ' + (place + 1) } }, ...names.filter((name) => name !== two[1 - place]).map((value) => make('option', { value, textContent: value, selected: value === two[place] })));
      select.addEventListener('change', () => {
        redraw(two.map((name, at) => (at === place ? select.value : name)));
        find('compare').querySelectorAll('select')[place].focus();
      });
      return make('h4', {}, make('label', {}, 'System', select));
    };
    const found = two.map((name, place) => {
      const mine = lists.get(name), other = lists.get(two[1 - place]), at = part.systems.indexOf(name);
      const facts = at < 0 ? [] : [part.measure + ' ' + raggs.number(line.scores[at]), ...(line.losses[at] ? [raggs.number(line.losses[at]) + ' lost'] : [])];
      const item = (hit, rank) => {
        const row = of(hit), alone = other && !other.ids.includes(row.id);
        return passage(row, rank + 1, terms, ...(alone ? [make('span', { className: row.grade >= part.relevant ? 'chip' : 'note', textContent: 'only ' + name })] : []));
      };
      return make('div', {}, head(place), make('p', { className: 'soft', textContent: facts.join(' · ') || '\u00a0' }), make('ol', {}, ...mine.hits.map(item)), ...(mine.hits.length ? [] : [make('p', { className: 'soft', textContent: 'No passage was returned.' })]));
    });
    const order = sheet.rows.filter((row) => row.rank).sort((one, other) => one.rank - other.rank);
    const best = (order.length ? order : sheet.rows.filter((row) => row.grade !== null).sort((one, other) => other.grade - one.grade)).slice(0, Math.max(sheet.top, 10));
    const at = (name, id) => { const place = lists.get(name).ids.indexOf(id); return name + '\u00a0' + (place < 0 ? '–' : place + 1); };
    const where = (row) => {
      const missed = two.every((name) => !lists.get(name).ids.includes(row.id));
      const textContent = missed ? (two.length > 1 ? 'in neither list' : 'not in the list') + ' (first ' + part.depth + ')' : two.map((name) => at(name, row.id)).join(', ');
      return make('span', { className: missed && row.grade >= part.relevant ? 'chip doubt' : 'note', textContent });
    };
    const ideal = best.map((row, place) => passage(row, row.rank ?? place + 1, terms, ...(two.length ? [where(row)] : [])));
    const title = order.length ? 'Golden order' : 'Best grades';
    const last = make('div', {}, make('h4', { textContent: title }), make('p', { className: 'soft', textContent: two.length ? 'with its rank in each list (–: not in it)' : '\u00a0' }), make('ol', {}, ...ideal), ...(ideal.length ? [] : [make('p', { className: 'soft', textContent: 'No passage has a grade.' })]));
    const all = [...found, last], titles = [...two, title];
    column = Math.min(column, all.length - 1);
    const buttons = titles.map((textContent, place) => make('button', { type: 'button', textContent, onclick: () => { column = place; choose(); } }));
    const choose = () => all.forEach((each, place) => {
      each.toggleAttribute('data-off', place !== column);
      buttons[place].setAttribute('aria-pressed', String(place === column));
    });
    choose();
    const only = two.length > 1 ? [make('p', { className: 'soft', textContent: 'Each list has the first ' + part.depth + ' passages of a system. “Only ' + two[0] + '”: the passage is not in the list of ' + two[1] + '.' })] : [];
    return make('div', {}, make('p', { className: 'say', textContent: verdict(line, two) }), ...extremes(line, two, redraw), make('p', { className: 'soft', textContent: 'Select a passage to read it. Boxes: grades; higher is better; · has no grade.' + (line.text ? ' Words of the query are highlighted.' : '') }), make('div', { className: 'switch', attributes: { role: 'group', 'aria-label': 'Shown list' } }, ...buttons), make('div', { className: 'columns' }, ...all), ...only);
  }

  function step() {
    const place = shown.findIndex((row) => row.at === open);
    find('before').disabled = place <= 0;
    find('next').disabled = place < 0 || place === shown.length - 1;
  }
  const go = (by) => {
    const next = shown[shown.findIndex((row) => row.at === open) + by];
    if (!next) return;
    open = next.at; // a second key may come before the address has changed
    location.hash = 'question=' + encodeURIComponent(next.id);
  };
  const back = () => {
    location.hash = 'questions';
    const row = rows[open];
    if (shown.includes(row)) table.focus(row); else search.focus({ preventScroll: true });
  };
  find('before').addEventListener('click', () => go(-1));
  find('next').addEventListener('click', () => go(1));
  find('back').addEventListener('click', back);

  const [copied, link] = [find('copied'), find('link')];
  find('copy').addEventListener('click', async () => {
    const address = location.href.split('#')[0] + '#question=' + encodeURIComponent(rows[open].id);
    try {
      await navigator.clipboard.writeText(address);
      copied.textContent = 'Link copied.';
    } catch { // no permission, or no clipboard
      Object.assign(link, { value: address, hidden: false });
      link.select();
      copied.textContent = 'Copy the selected link.';
    }
  });

  find('close').addEventListener('click', () => help.close());
  document.querySelector('.questions-keys').addEventListener('click', () => help.showModal());
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || help.open || event.target.closest?.('input, select, textarea')) return;
    const way = { j: 1, k: -1 }[event.key], opened = !one.hidden;
    if (way && opened) go(way);
    else if (way) table.move(way);
    else if (event.key === 'Escape' && opened) back();
    else if (event.key === '/') search.focus();
    else if (event.key === '?') help.showModal();
    else return;
    event.preventDefault();
  });

  filter();
  raggs.listen((qid) => {
    const here = places.has(qid);
    unknown.hidden = here;
    one.hidden = !here;
    if (!here) {
      unknown.textContent = 'No query ‘' + qid + '’ in this report.';
      unknown.focus({ preventScroll: true });
      unknown.scrollIntoView({ block: 'center' });
      return;
    }
    open = places.get(qid);
    const line = rows[open], sheet = unpack(line);
    find('id').textContent = line.id;
    find('asked').textContent = line.text || line.id;
    copied.textContent = '';
    link.hidden = true;
    find('compare').replaceChildren(compare(line, sheet));
    find('sheet').replaceChildren(scored(line), sheets.draw(sheet, sheets.ENGLISH, 'h4', part.depth));
    step();
    find('asked').focus({ preventScroll: true });
    one.scrollIntoView({ block: 'start' });
  });
})();
