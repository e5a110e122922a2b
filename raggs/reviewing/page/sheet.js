/* One question of a golden set, drawn from its sheet (raggs/golden/views.py), for the review page and the report. All
   of a sheet is foreign text: it is set as textContent alone, and no markup is ever made of it. */
const sheets = (() => {
  const ENGLISH = {
    order: 'Best order', later: (n) => `${n} more ranks`, pool: 'Other passages found', systems: 'What systems returned', passage: 'passage', grade: 'grade', none: 'not judged', missing: 'no grade',
    rank: (n) => `rank ${n}`, plausible: (low, high) => `possible ranks ${low} to ${high}`, above: (share) => `${share}%`, locked: 'certain',
    columns: ['rank', 'possible ranks', 'grade', 'better than next', 'passage'],
    legend: 'The line spans the possible ranks (95%). “Better than next”: probability that this passage is better than the one below it. Numbers in boxes are grades; higher is better.',
    doubt: (n, top) => `about ${n} pairs of the top ${top} are in the wrong order`, stopped: (why) => `the ranking stopped: ${why}`, unranked: 'Nothing is ranked; passages are in the order of their fused rank.', labels: 'Nothing is ranked; passages are in the order of their grade.', hidden: (n) => `${n} more passages that systems found are not shown here.`, empty: 'No retriever found a passage.',
    rewrite: 'searched for', language: 'language', kind: 'kind', answer: 'expected answer', found: (n) => `${n} passages`, best: (n, top) => `with ${n} of the ${top} best`, strip: (n) => `Boxes: grades of the first ${n} passages, in the order of the system; higher is better, · has no grade.`, first: (n) => `its first ${n}`,
    more: (n) => `… ${n} characters more`, by: 'graded by', votes: 'out of', why: 'why', cut: 'not ranked', near: 'near-duplicate', twin: 'near-duplicate of', below: 'certainly better than', sources: 'found by', where: 'place', score: 'score', words: 'annotators', cannot: 'cannot tell', decided: 'decided', silent: 'The text is left out here.', unknown: 'no grade: it was not among the passages for grading',
  };

  function make(tag, properties, ...children) {
    const { attributes = {}, ...plain } = properties || {};
    const made = Object.assign(document.createElement(tag), plain);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
    return made;
  }

  const FEWEST = 10; // ranks that are shown at once, where the top is smaller
  const SVG = 'http://www.w3.org/2000/svg';
  function shape(tag, attributes, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    made.append(...children);
    return made;
  }

  const soft = (text) => make('p', { className: 'sheet-soft', textContent: text });
  const isolated = (text) => make('bdi', { textContent: text });
  const same = (text) => [text]; // no highlighting
  const sign = (grade) => (grade === undefined || grade === null ? '·' : String(grade));
  // `shade`: colour on the scale 1 to 5, if it is not the grade.
  const chip = ({ grade, shade }) => make('span', { className: `sheet-grade sheet-g${shade ?? grade ?? 0}`, textContent: sign(grade) });
  const unseen = (text) => make('span', { className: 'unseen', textContent: text });

  // From the best to the worst plausible rank, with the place that the passage has.
  function whisker(row, last) {
    const at = (rank) => ((rank - 0.5) / last) * 100;
    const low = Math.min(at(row.low), at(row.rank)), high = Math.max(at(row.high), at(row.rank));
    return shape('svg', { class: 'sheet-whisker', viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      shape('line', { x1: 0, x2: 100, y1: 6, y2: 6, class: 'axis' }),
      shape('line', { x1: Math.max(0, low - 0.8), x2: Math.min(100, high + 0.8), y1: 6, y2: 6, class: 'span' }),
      shape('line', { x1: at(row.rank), x2: at(row.rank), y1: 1, y2: 11, class: 'place' }));
  }

  function head(row, last, said, ranked, mark) {
    const name = make('span', { className: 'sheet-name' }, row.title ? make('bdi', {}, ...mark(row.title)) : isolated(row.id), row.title ? make('small', {}, isolated(row.id)) : null, row.twin ? make('span', { className: 'sheet-twin', textContent: `= ${said.near}` }) : null);
    const grade = make('span', { className: 'sheet-cell' }, unseen(`${said.grade} `), Number.isInteger(row.grade) ? chip(row) : make('span', { className: 'sheet-grade sheet-g0' }, make('span', { textContent: '·', attributes: { 'aria-hidden': 'true' } }), unseen(said.missing)));
    if (!ranked) return make('summary', { className: 'sheet-row plain' }, make('span', { className: 'sheet-rank', textContent: row.pooled ? String(row.pooled) : '' }), grade, name);
    const sure = row.locked ? said.locked : row.sure === undefined || row.sure === null ? '' : said.above(Math.round(100 * row.sure));
    return make('summary', { className: 'sheet-row' },
      make('span', { className: 'sheet-rank' }, unseen(`${said.columns[0]} `), String(row.rank)),
      make('span', { className: 'sheet-span' }, whisker(row, last), unseen(`${said.plausible(row.low, row.high)},`)),
      grade, make('span', { className: 'sheet-sure' }, unseen(`${said.columns[3]} `), sure), name);
  }

  // What is known of one passage, made when it is first opened.
  function body(row, said, go, mark) {
    const facts = [];
    const fact = (name, ...values) => facts.push(make('dt', { textContent: name }), make('dd', {}, ...values));
    if (row.by) fact(said.by, isolated(row.by));
    if (row.votes) fact(said.votes, isolated(row.votes));
    if (row.said) fact(said.why, isolated(row.said));
    if (row.words?.length) fact(said.words, ...row.words.flatMap((word, place) => [place ? '; ' : null, make('strong', {}, isolated(word.who)), word.decided ? ` (${said.decided})` : null, `: ${word.grade ? `${said.grade} ${word.grade}` : said.cannot}`, word.note ? ', ' : null, word.note ? isolated(word.note) : null]));
    if (row.twin) fact(said.twin, link(row.twin, go));
    if (row.below?.length) fact(said.below, ...row.below.flatMap((id, place) => [place ? ', ' : null, link(id, go)]));
    if (row.cut) fact(said.cut, isolated(row.cut));
    if (row.score !== undefined && row.score !== null) fact(said.score, `${row.score.toFixed(2)} ± ${(row.sigma || 0).toFixed(2)}`);
    if (row.sources?.length) fact(said.sources, row.sources.map(([name, rank]) => `${name} ${rank}`).join(', '));
    if (row.where) fact(said.where, isolated(row.where));
    const text = row.text ? make('div', { className: 'sheet-text', dir: 'auto' }, ...mark(row.text)) : soft(said.silent);
    return make('div', { className: 'sheet-body' }, text, row.more ? soft(said.more(row.more.toLocaleString())) : null, make('dl', {}, ...facts));
  }

  function link(id, go) {
    return make('button', { type: 'button', className: 'sheet-link', onclick: () => go(id) }, isolated(id));
  }

  function passage(row, last, said, ranked, go, mark) {
    const box = make('details', { className: 'sheet-passage' }, head(row, last, said, ranked, mark));
    const fill = () => { if (box.children.length === 1) box.append(body(row, said, go, mark)); };
    box.addEventListener('toggle', fill);
    box.fill = fill;
    return box;
  }

  // A strip of grades, and below it, when it is opened, the passages themselves.
  function list(returned, sheet, said, go, depth) {
    const { hits } = returned, shown = hits.slice(0, depth);
    const of = (hit) => (typeof hit === 'number' ? sheet.rows[hit] : { id: hit, strange: true });
    const best = sheet.top ? hits.filter((hit) => typeof hit === 'number' && sheet.rows[hit].rank && sheet.rows[hit].rank <= sheet.top).length : 0;
    const told = shown.map((hit) => of(hit).grade ?? said.none).join(', ');
    const counts = [(returned.found ?? Infinity) <= hits.length ? said.found(returned.found) : said.first(hits.length), sheet.top ? said.best(best, sheet.top) : null].filter(Boolean).join(' · ');
    const box = make('details', { className: 'sheet-system' }, make('summary', {},
      make('span', { className: 'sheet-name' }, isolated(returned.system), make('small', { textContent: counts })),
      make('span', { className: 'sheet-strip', attributes: { 'aria-hidden': 'true' } }, ...shown.map((hit) => chip(of(hit)))),
      unseen(shown.length ? `, ${said.first(shown.length)}: ${told}` : '')));
    box.addEventListener('toggle', () => {
      if (box.children.length > 1) return;
      box.append(make('ol', { className: 'sheet-hits' }, ...hits.map((hit) => {
        const row = of(hit);
        return make('li', {}, chip(row), ' ', row.strange ? make('span', {}, isolated(row.id), make('small', { textContent: ` ${said.unknown}` })) : link(row.id, go), row.title ? make('small', {}, ' ', isolated(row.title)) : null);
      })));
    });
    return box;
  }

  function facts(sheet, said) {
    const told = [[said.rewrite, sheet.rewrite], [said.language, sheet.language], [said.kind, sheet.kind], [said.answer, sheet.answer], ...(sheet.facts || [])];
    const shown = told.filter(([, value]) => value);
    return shown.length ? make('dl', { className: 'sheet-facts' }, ...shown.flatMap(([name, value]) => [make('dt', {}, isolated(name)), make('dd', {}, isolated(value))])) : null;
  }

  // The question's parts below its heading. `said`: words, as ENGLISH has them; `tag`: of headings; `depth`: grades of
  // each system in a line; `mark`: gives the nodes of a text with the words of the query highlighted.
  function draw(sheet, said = ENGLISH, tag = 'h3', depth = 20, mark = same) {
    const heading = (text) => make(tag, { className: 'sheet-heading', textContent: text });
    const rows = sheet.rows || [], ranked = rows.filter((row) => row.rank), rest = rows.filter((row) => !row.rank);
    const boxes = new Map(), first = Math.max(sheet.top || 0, FEWEST), split = ranked.length > first + 3 ? first : ranked.length;
    const go = (id) => {
      const box = boxes.get(id);
      if (!box) return;
      box.fill();
      for (let each = box; each; each = each.parentElement) if (each.tagName === 'DETAILS') each.open = true;
      box.firstElementChild.focus();
      box.scrollIntoView({ block: 'nearest' });
    };
    const drawn = (some, isRanked) => {
      const last = Math.max(1, ...some.map((row) => Math.max(row.high || 0, row.rank || 0)));
      return some.map((row) => {
        const box = passage(row, last, said, isRanked, go, mark);
        boxes.set(row.id, box);
        return box;
      });
    };
    const titles = make('div', { className: 'sheet-row sheet-titles', attributes: { 'aria-hidden': 'true' } }, ...said.columns.map((title) => make('span', { textContent: title })));
    const parts = [facts(sheet, said)], systems = sheet.lists?.length ? [heading(said.systems), ...sheet.lists.map((each) => list({ hits: [], ...each }, { ...sheet, rows }, said, go, depth))] : [];
    parts.push(...systems, systems.length ? soft(said.strip(depth)) : null);
    if (!rows.length && !sheet.pool) parts.push(soft(said.empty));
    if (ranked.length) {
      const doubt = [sheet.doubt === undefined || sheet.doubt === null ? null : said.doubt(sheet.doubt.toFixed(1), sheet.top), sheet.stopped ? said.stopped(sheet.stopped) : null].filter(Boolean).join('; ');
      const later = ranked.slice(split);
      parts.push(heading(said.order), titles, ...drawn(ranked.slice(0, split), true), later.length ? make('details', { className: 'sheet-rest' }, make('summary', { textContent: said.later(later.length) }), ...drawn(later, true)) : null, soft(`${said.legend}${doubt ? ` ${doubt.charAt(0).toUpperCase()}${doubt.slice(1)}.` : ''}`));
    }
    if (rest.length && !ranked.length) parts.push(soft(rest.some((row) => row.pooled) ? said.unranked : said.labels), ...drawn(rest, false));
    if (rest.length && ranked.length) parts.push(make('details', { className: 'sheet-pool' }, make('summary', {}, heading(`${said.pool} (${rest.length})`)), ...drawn(rest, false)));
    if ((sheet.pool || 0) > rows.length) parts.push(soft(said.hidden(sheet.pool - rows.length)));
    return make('div', { className: 'sheet' }, ...parts.filter(Boolean));
  }

  return { draw, make, ENGLISH };
})();
