'use strict';
/* Shared by all sections: `raggs.data(name)` is a section's part, `raggs.make` an element whose texts are texts. Nothing
   here, and nothing in a section's script, may write markup: what users wrote is set as textContent alone. */
const raggs = {
  data(name) {
    raggs.parts[name] ??= JSON.parse(document.getElementById(name + '-data')?.textContent ?? 'null');
    return raggs.parts[name];
  },
  parts: {},
  /* Texts of queries by id, which only the section of the queries stores. */
  text(qid) {
    raggs.texts ??= new Map((raggs.data('questions')?.lines ?? []).map((line) => [line.id, line.text]));
    return raggs.texts.get(qid) ?? '';
  },
  /* Text for searching: without accents, in lower case. */
  plain(text) {
    return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  },
  /* 1,000; without the locale data of a browser, whose loading takes long. */
  whole(number) {
    return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
  },
  count(number) {
    return raggs.whole(number) + (number === 1 ? ' query' : ' queries');
  },
  make(tag, properties, ...children) {
    const { attributes = {}, ...plain } = properties || {};
    const made = Object.assign(document.createElement(tag), plain);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },
  /* A link to a query if the page has a section of them, else its id. `listen` calls `open` with the wanted id, again
     if the link of the open query is followed. */
  link(qid, words) {
    if (!document.getElementById('questions')) return raggs.make('span', { textContent: words || qid, dir: 'auto' });
    return raggs.make('a', { textContent: words || qid, dir: 'auto', href: '#question=' + encodeURIComponent(qid) });
  },
  asks(qid) {
    const text = raggs.text(qid);
    const said = raggs.make('small', { textContent: text, dir: 'auto' });
    return raggs.make('span', { className: 'asks' }, raggs.link(qid), ...(text ? [said] : []));
  },
  listen(open) {
    const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
    const hear = () => { if (location.hash.startsWith('#question=')) open(decoded(location.hash.slice(10))); };
    addEventListener('hashchange', hear);
    addEventListener('click', (event) => { if (event.target.closest?.('a[href^="#question="]')?.hash === location.hash) hear(); });
    hear();
  },
  number(value, digits = 3) {
    if (value === null || value === undefined) return '–';
    const text = value.toFixed(digits);
    const half = Math.abs(value * 2 ** (digits + 1)) % 2 === 1 && Number(text.at(-1)) % 2; // toFixed rounds a half up, Python to the even digit
    return (half ? (value - Math.sign(value) * 0.5 * 10 ** -digits).toFixed(digits) : text).replace(/^-(0\.0+)$/, '$1');
  },
  signed(value, digits = 3) {
    const text = raggs.number(value, digits);
    return value === null || value === undefined || text.startsWith('-') ? text.replace('-', '\u2212') : '+' + text;
  },
  /* A table that sorts by its titles and draws rows as they come into view. Columns: {title, value(row), draw(row)},
     where draw gives a text or an element, and value what is sorted by; `figure`: numbers; `minor`: hidden on a
     narrow screen. `ordered` is called with the rows in their new order. Arrow keys, j and k move between the rows.
     Gives {show(rows), focus(row), move(step)}. */
  table(host, { label, columns, rows, sort = 0, down = true, ordered = () => {} }) {
    const CHUNK = 40;
    const looks = ({ figure, minor }) => [figure ? 'figure' : '', minor ? 'minor' : ''].join(' ').trim();
    const body = raggs.make('tbody');
    const end = raggs.make('div', { className: 'end' });
    const heads = columns.map((column, place) => {
      const button = raggs.make('button', { type: 'button', textContent: column.title, className: 'sort' });
      button.addEventListener('click', () => { down = sort === place ? !down : Boolean(column.figure); sort = place; order(); });
      return raggs.make('th', { scope: 'col', className: looks(column) }, button);
    });
    const table = raggs.make('table', {}, raggs.make('thead', {}, raggs.make('tr', {}, ...heads)), body);
    const box = raggs.make('div', { className: 'wide long', tabIndex: 0, attributes: { role: 'region', 'aria-label': label } }, table, end);
    const printed = raggs.make('p', { className: 'soft printed' });
    let shown = rows, drawn = 0;
    const more = () => {
      const lines = shown.slice(drawn, drawn + CHUNK).map((row) => raggs.make('tr', {}, ...columns.map((column) =>
        raggs.make('td', { className: looks(column) }, column.draw(row)))));
      body.append(...lines);
      drawn += lines.length;
      printed.textContent = drawn < shown.length ? 'The first ' + drawn + ' of ' + raggs.whole(shown.length) + ' rows are printed.' : '';
    };
    const order = () => {
      const { value } = columns[sort], way = down ? -1 : 1;
      const least = (each) => each === null || each === undefined;
      shown = [...shown].sort((one, other) => {
        const [a, b] = [value(one), value(other)];
        if (least(a) || least(b)) return least(a) - least(b);
        return a < b ? -way : a > b ? way : 0;
      });
      heads.forEach((head, place) => place === sort ? head.setAttribute('aria-sort', down ? 'descending' : 'ascending') : head.removeAttribute('aria-sort'));
      body.replaceChildren();
      drawn = 0;
      more();
      if (!shown.length) body.append(raggs.make('tr', {}, raggs.make('td', { colSpan: columns.length, className: 'soft', textContent: 'No row matches the filters.' })));
      ordered(shown);
      requestAnimationFrame(() => { box.scrollTop = 0; }); // at once, it would cost a layout of the page
    };
    new IntersectionObserver((changes) => { if (changes.some((each) => each.isIntersecting)) more(); }, { root: box, rootMargin: '400px' }).observe(end);
    const focus = (place) => {
      while (place >= drawn && drawn < shown.length) more();
      const row = body.rows[place];
      if (!row) return;
      row.querySelector('a')?.focus({ preventScroll: true });
      row.scrollIntoView({ block: 'nearest' });
      const { top, bottom } = box.getBoundingClientRect();
      if (top > innerHeight / 3 || bottom < innerHeight / 3) box.scrollIntoView({ block: 'center' }); // its section is in view
    };
    const move = (step) => focus(Math.max(0, [...body.rows].indexOf(document.activeElement.closest('tbody tr')) + step));
    box.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      move(step);
    });
    host.replaceChildren(box, printed);
    order();
    return { show(found) { shown = found; order(); }, focus(row) { focus(shown.indexOf(row)); }, move };
  },
};

(() => {
  const theme = document.getElementById('theme');
  const root = document.documentElement;
  const dress = (name) => { if (name) root.dataset.theme = name; else delete root.dataset.theme; };
  const KEY = 'raggs-theme';
  try { theme.value = localStorage.getItem(KEY) ?? ''; } catch { /* storage is blocked: the theme is not remembered */ }
  if (theme.selectedIndex < 0) theme.value = '';
  dress(theme.value);
  theme.hidden = false;
  theme.addEventListener('change', () => {
    dress(theme.value);
    try { localStorage.setItem(KEY, theme.value); } catch { /* see above */ }
  });

  /* A button that copies a command, or the full text of a shortened hash. Without a clipboard, it selects the text. */
  for (const each of document.querySelectorAll('.command, [data-copy]')) {
    const text = each.dataset.copy ?? each.textContent;
    const button = raggs.make('button', { type: 'button', className: 'copy screen', textContent: 'Copy', attributes: { 'aria-label': 'Copy ' + text } });
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
      } catch { // no permission, or no clipboard
        if (each.dataset.copy) each.textContent = text;
        getSelection().selectAllChildren(each);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    if (each.dataset.copy) each.after(button); else each.prepend(button);
  }

  const nav = document.querySelector('nav');
  const links = new Map([...nav.children].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver((changes) => {
    for (const each of changes) each.isIntersecting ? seen.add(each.target.id) : seen.delete(each.target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) id === first ? link.setAttribute('aria-current', 'true') : link.removeAttribute('aria-current');
    if (first && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = links.get(first).offsetLeft - nav.offsetLeft - nav.clientWidth / 3;
  }, { rootMargin: '-20% 0px -60% 0px' });
  document.querySelectorAll('main > section').forEach((each) => watch.observe(each));

  /* Print two pages and an appendix: what a summary folds or filters moves to the appendix, and all details are opened.
     afterprint puts everything back. */
  let undo = [];
  addEventListener('beforeprint', () => {
    dress('light');
    undo.push(() => dress(theme.value));
    const appendix = document.getElementById('appendix');
    for (const each of appendix ? document.querySelectorAll('.summary details:not(.brief), .summary .in-appendix') : []) {
      if (each.parentElement.closest('details')) continue;
      const place = document.createComment('');
      each.replaceWith(place);
      appendix.append(each);
      undo.push(() => place.replaceWith(each));
    }
    for (const each of document.querySelectorAll('details:not([open])')) {
      each.open = true;
      undo.push(() => { each.open = false; });
    }
  });
  addEventListener('afterprint', () => { undo.forEach((back) => back()); undo = []; });
})();
