'use strict';
/* Shared by all sections: `raggs.data(name)` is a section's part, `raggs.make` an element whose texts are texts. Nothing
   here, and nothing in a section's script, may write markup: what users wrote is set as textContent alone. */
const raggs = {
  data(name) {
    return JSON.parse(document.getElementById(name + '-data').textContent);
  },
  make(tag, properties, ...children) {
    const { attributes = {}, ...plain } = properties || {};
    const made = Object.assign(document.createElement(tag), plain);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },
};

(() => {
  const button = document.getElementById('theme');
  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const label = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  button.hidden = false;
  label();
  button.addEventListener('click', () => { root.dataset.theme = dark() ? 'light' : 'dark'; label(); });

  const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver((changes) => {
    for (const each of changes) each.isIntersecting ? seen.add(each.target.id) : seen.delete(each.target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) id === first ? link.setAttribute('aria-current', 'true') : link.removeAttribute('aria-current');
  }, { rootMargin: '-20% 0px -60% 0px' });
  document.querySelectorAll('main > section').forEach((each) => watch.observe(each));

  let opened = [];
  addEventListener('beforeprint', () => { opened = [...document.querySelectorAll('details:not([open])')]; opened.forEach((each) => { each.open = true; }); });
  addEventListener('afterprint', () => opened.forEach((each) => { each.open = false; }));
})();
