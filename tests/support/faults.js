/* Returns the faults in the layout and the colours of a page, for the current window. */
() => {
  const found = [];
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const label = (e) => {
    const part = e.closest('section, header, footer, dialog');
    const kind = e.getAttribute('class');
    return `${part ? part.id || part.localName : ''} <${e.localName}${kind ? ` class="${kind}"` : ''}> ${e.textContent.trim().slice(0, 40)}`;
  };
  const cut = (a, b) => ({ left: Math.max(a.left, b.left), top: Math.max(a.top, b.top), right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom) });
  const area = (a) => Math.max(0, a.right - a.left) * Math.max(0, a.bottom - a.top);
  const everything = { left: -1e6, top: -1e6, right: 1e6, bottom: 1e6 };
  const windows = new Map([[document.documentElement, everything], [document.body, everything]]);
  /* What its ancestors leave visible of an element. */
  const windowOf = (e) => {
    if (!windows.has(e)) {
      const own = getComputedStyle(e), above = windowOf(e.parentElement);
      windows.set(e, own.overflowX === 'visible' && own.overflowY === 'visible' ? above : cut(above, e.getBoundingClientRect()));
    }
    return windows.get(e);
  };
  const floating = (e) => {
    for (let each = e; each; each = each.parentElement) if (['sticky', 'fixed'].includes(getComputedStyle(each).position)) return true;
    return false;
  };
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page scrolls sideways: ${document.documentElement.scrollWidth} pixels in ${innerWidth}`);

  for (const nav of document.querySelectorAll('header nav')) if (innerWidth >= 1000 && nav.scrollWidth > nav.clientWidth + 1) found.push('the navigation is cut');

  /* Texts that overlap. Lines are taken without their leading. */
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest('script, style, select, title, option, .skip, dialog:not([open])') || !shown(e) || floating(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const lead = (line.bottom - line.top) * .22;
      const box = cut({ left: line.left + 1, right: line.right - 1, top: line.top + lead, bottom: line.bottom - lead }, windowOf(e));
      if (area(box) > 0) boxes.push({ ...box, e });
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  boxes.forEach((box, at) => {
    for (let next = at + 1; next < boxes.length && boxes[next].top < box.bottom; next++) {
      const shared = cut(box, boxes[next]);
      if (box.e !== boxes[next].e && shared.right - shared.left > 1 && shared.bottom - shared.top > 1) found.push(`texts overlap: ${label(box.e)} | ${label(boxes[next].e)}`);
    }
    const hanging = getComputedStyle(box.e).whiteSpaceCollapse === 'preserve'; // spaces at the end of a line have boxes outside of it
    if (!hanging && (box.right > innerWidth + 1 || box.left < -1)) found.push(`outside of the window: ${label(box.e)}`);
  });

  /* Texts that are cut. */
  for (const e of document.querySelectorAll('svg text')) {
    if (!shown(e)) continue;
    const own = e.getBoundingClientRect(), frame = e.ownerSVGElement.getBoundingClientRect();
    if (own.left < frame.left - 1 || own.right > frame.right + 1 || own.top < frame.top - 2 || own.bottom > frame.bottom + 2) found.push(`outside of its figure: ${label(e)}`);
  }
  for (const e of document.querySelectorAll('body *')) {
    const style = getComputedStyle(e);
    if (!shown(e) || e.closest('svg') || !['hidden', 'clip'].includes(style.overflowX) || style.textOverflow === 'ellipsis' || !e.textContent.trim()) continue;
    if (e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1) found.push(`cut: ${label(e)}`);
  }

  /* Figures and sections without content. */
  for (const svg of document.querySelectorAll('figure svg')) {
    if (!shown(svg)) continue;
    const drawn = [...svg.querySelectorAll('path, circle, rect:not(.page), line, polyline')].filter((each) => area(each.getBoundingClientRect()) > 0 || each.getBoundingClientRect().width + each.getBoundingClientRect().height > 2);
    const box = svg.closest('.wide');
    if (innerWidth >= 1000 && box && box.scrollWidth > box.clientWidth + 1) found.push(`a figure is wider than its place: ${label(svg)}`);
    if (drawn.length === 0 || svg.getBoundingClientRect().height < 20) found.push(`an empty figure: ${label(svg)}`);
  }
  for (const section of document.querySelectorAll('main > section')) {
    const head = section.querySelector('h2');
    if (!head || !head.textContent.trim() || ![...section.children].some((each) => each !== head && shown(each) && each.getBoundingClientRect().height > 10)) found.push(`an empty section: ${section.id}`);
  }
  for (const link of document.querySelectorAll('nav a[href^="#"]')) if (!document.getElementById(link.hash.slice(1))) found.push(`no section for the link ${link.hash}`);

  /* Colours that are not in theme.css. */
  const rules = (sheet) => [...sheet].flatMap((rule) => rule.cssRules && !rule.style ? rules(rule.cssRules) : [rule]);
  const names = new Set([...document.styleSheets].flatMap((sheet) => rules(sheet.cssRules)).filter((rule) => rule.selectorText && rule.selectorText.includes(':root')).flatMap((rule) => [...rule.style].filter((name) => name.startsWith('--'))));
  const probe = document.body.appendChild(document.createElement('i'));
  const allowed = new Set(['rgba(0, 0, 0, 0)', 'none']);
  for (const name of names) {
    probe.style.color = '';
    probe.style.setProperty('color', `var(${name})`);
    allowed.add(getComputedStyle(probe).color);
  }
  probe.remove();
  const strange = new Map();
  for (const e of document.querySelectorAll('body, body *')) {
    if (!shown(e) || e.closest('defs, select, option') || e.localName === 'title') continue;
    const style = getComputedStyle(e), drawn = e.closest('svg') && e.localName !== 'svg';
    const straight = e.localName === 'line' || /^M[^ML]*L[^ML]*$/.test(e.getAttribute('d') || '');
    const wanted = drawn ? [straight ? 'none' : style.fill, style.stroke] : [style.color, style.backgroundColor];
    if (!drawn && style.borderTopWidth !== '0px') wanted.push(style.borderTopColor);
    for (const colour of wanted) if (!allowed.has(colour) && !strange.has(colour)) strange.set(colour, label(e));
  }
  for (const [colour, where] of strange) found.push(`a colour that is not in the theme: ${colour} of ${where}`);
  return [...new Set(found)];
}
