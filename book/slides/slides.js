// Starts reveal.js. On a slide with a figure, the keys for "on" and "back" step the figure first, then the slides.
(function () {
  'use strict';

  const deck = new Reveal({hash: true, width: 1280, height: 720, margin: 0.04, center: false, transition: 'none', plugins: [RevealNotes]});
  const on = ['ArrowRight', 'PageDown', ' '];
  const back = ['ArrowLeft', 'PageUp'];

  window.addEventListener('keydown', (event) => {
    const figure = deck.getCurrentSlide() && deck.getCurrentSlide().querySelector('nccl-figure');
    if (!figure || !figure.data || deck.isOverview() || event.target.tagName === 'SELECT') return;
    if (figure.data.timeline) {
      if (event.key === '+' || event.key === '-') figure.zoom(event.key === '+' ? 2 : 0.5);
      return;
    }
    const by = on.includes(event.key) ? 1 : back.includes(event.key) ? -1 : 0;
    if (!by || figure.step + by < 0 || figure.step + by > figure.last) return;
    figure.go(figure.step + by);
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  // Light at first: in a lit room a dark slide can't be read, whatever the computer prefers.
  deck.addKeyBinding({keyCode: 68, key: 'D', description: 'Dark, and light again'}, () => {
    document.body.dataset.theme = document.body.dataset.theme === 'dark' ? 'light' : 'dark';
  });

  const loaded = new Promise((done) => window.addEventListener('load', done));
  Promise.all([deck.initialize(), loaded]).then(() => {
    // On paper a figure is shown at its last step.
    if (!/print-pdf/.test(location.search)) return;
    for (const figure of document.querySelectorAll('nccl-figure')) if (!figure.data.timeline) figure.go(figure.last);
  });
})();
