// Starts reveal.js. It counts a figure's steps as fragments of the slide: keys, clickers and the speaker's window then
// step the figure first, and after that the slides.
(function () {
  'use strict';

  const deck = new Reveal({hash: true, width: 1280, height: 720, margin: 0.04, center: false, transition: 'none', slideNumber: true,
                           pdfSeparateFragments: false, plugins: [RevealNotes]});

  // The figure of the slide that is shown, once it is ready.
  function shown() {
    const figure = deck.getCurrentSlide() && deck.getCurrentSlide().querySelector('nccl-figure');
    return figure && figure.data ? figure : null;
  }

  // A fragment for each step of the run that the figure shows.
  function count(figure) {
    const slide = figure.closest('section');
    for (const old of slide.querySelectorAll('.fragment')) old.remove();
    for (let step = 1; step <= figure.last; step++) {
      const fragment = document.createElement('span');
      fragment.className = 'fragment';
      slide.append(fragment);
    }
    deck.syncFragments(slide);
  }

  function follow() {
    const figure = shown();
    if (!figure) return;
    if (figure.data.timeline) figure.view(0, 1);  // now it has a width
    else figure.go(deck.getIndices().f + 1);
  }

  function prepare(figure) {
    if (figure.data.timeline) return;
    figure.key = () => {};
    count(figure);
    figure.addEventListener('change', (event) => {
      count(figure);
      event.target.blur();
      follow();
    });
  }

  function zoom(by) {
    const figure = shown();
    if (figure && figure.data.timeline) figure.zoom(by);
  }

  for (const code of [187, 107]) deck.addKeyBinding({keyCode: code, key: '+', description: 'Zoom into a timeline'}, () => zoom(2));
  for (const code of [189, 109]) deck.addKeyBinding({keyCode: code, key: '-', description: 'Zoom out of it'}, () => zoom(0.5));
  // Light at first: in a lit room a dark slide can't be read, whatever the computer prefers.
  deck.addKeyBinding({keyCode: 68, key: 'D', description: 'Dark, and light again'}, () => {
    document.body.dataset.theme = document.body.dataset.theme === 'dark' ? 'light' : 'dark';
  });
  for (const event of ['fragmentshown', 'fragmenthidden', 'slidechanged']) deck.on(event, follow);

  const loaded = new Promise((done) => window.addEventListener('load', done));
  Promise.all([deck.initialize(), loaded]).then(() => {
    for (const figure of document.querySelectorAll('nccl-figure')) {
      prepare(figure);
      // On paper a figure is shown at its last step.
      if (/print-pdf/.test(location.search) && !figure.data.timeline) figure.go(figure.last);
    }
    follow();
  });
})();
