// <nccl-figure>: a figure that can be stepped, or a timeline that can be zoomed. Its data are JSON in a script inside:
// {runs: [{label, words, svg}], first}, drawn by book/figures/stepped.py from recorded runs, or {timeline: svg}.
// A group of an svg with data-from and data-to is shown in these steps. Without JavaScript the still picture stays.
(function () {
  'use strict';

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  class NcclFigure extends HTMLElement {
    connectedCallback() {
      if (this.ready) return;
      // The parser may not have come to the end of the element yet.
      if (document.readyState === 'loading') {
        document.addEventListener('DOMContentLoaded', () => this.connectedCallback());
        return;
      }
      const script = this.querySelector('script[type="application/json"]');
      if (!script) return;
      this.ready = true;
      this.data = JSON.parse(script.textContent);
      this.picture = make('div', {class: 'picture'});
      this.words = make('p', {class: 'words', role: 'status', 'aria-live': 'polite'});
      if (this.data.timeline) this.makeTimeline();
      else this.makeSteps();
      this.classList.add('live');
      // The pages' own keys lead to the previous and the next page: not from inside a figure.
      this.addEventListener('keydown', (event) => this.key(event));
    }

    disconnectedCallback() {
      this.pause();
    }

    // --- Steps

    makeSteps() {
      this.run = this.data.first || 0;
      this.step = 0;
      const controls = make('div', {class: 'buttons'});
      const button = (text, does) => make('button', {type: 'button', onclick: does}, text);
      this.back = button('◀ back', () => this.go(this.step - 1));
      this.next = button('next ▶', () => this.go(this.step + 1));
      controls.append(this.back, this.next);
      // Whoever wants less motion steps; nothing moves by itself.
      if (!window.matchMedia('(prefers-reduced-motion: reduce)').matches) {
        this.player = button('play', () => (this.timer ? this.pause() : this.play()));
        controls.append(this.player);
      }
      if (this.data.runs.length > 1) {
        const choice = make('select', {'aria-label': 'which recorded run', onchange: () => this.choose(choice.selectedIndex)});
        for (const run of this.data.runs) choice.append(make('option', {}, run.label));
        choice.selectedIndex = this.run;
        controls.append(choice);
      }
      this.append(this.picture, controls, this.words);
      this.setAttribute('tabindex', '0');
      this.setAttribute('role', 'group');
      this.setAttribute('aria-label', 'figure in steps: arrow keys go back and on');
      this.choose(this.run);
    }

    choose(run) {
      this.pause();
      this.run = run;
      this.picture.innerHTML = this.data.runs[run].svg;
      this.go(0);
    }

    get last() {
      return this.data.runs[this.run].words.length - 1;
    }

    go(step) {
      this.step = Math.min(Math.max(step, 0), this.last);
      for (const group of this.picture.querySelectorAll('[data-from]')) {
        const shown = group.dataset.from <= this.step && this.step <= group.dataset.to;
        group.style.display = shown ? '' : 'none';
      }
      this.words.replaceChildren(make('b', {}, `Step ${this.step} of ${this.last}. `), this.data.runs[this.run].words[this.step]);
      this.back.disabled = this.step === 0;
      this.next.disabled = this.step === this.last;
      if (this.step === this.last) this.pause();
    }

    play() {
      if (this.step === this.last) this.go(0);
      this.timer = setInterval(() => this.go(this.step + 1), 1600);
      this.player.textContent = 'pause';
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      if (this.player) this.player.textContent = 'play';
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === 'SELECT') return;
      const does = this.data.timeline
        ? {ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), '+': () => this.zoom(2), '-': () => this.zoom(0.5),
           Home: () => this.view(0, 1)}[event.key]
        : {ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.go(this.step + 1), Home: () => this.go(0),
           End: () => this.go(this.last)}[event.key];
      if (!does) return;
      does();
      event.preventDefault();
      event.stopPropagation();
    }

    // --- Timelines: the part [from, from + part] of the whole time is shown, as wide as the page

    makeTimeline() {
      const button = (text, name, does) => make('button', {type: 'button', 'aria-label': name, onclick: does}, text);
      const controls = make('div', {class: 'buttons'},
        button('+', 'zoom in', () => this.zoom(2)), button('−', 'zoom out', () => this.zoom(0.5)),
        button('◀', 'earlier', () => this.move(-0.25)), button('▶', 'later', () => this.move(0.25)),
        button('all', 'the whole time', () => this.view(0, 1)));
      this.picture.innerHTML = this.data.timeline;
      this.svg = this.picture.querySelector('svg');
      this.box = this.svg.viewBox.baseVal;
      this.whole = this.box.width;
      this.svg.removeAttribute('width');
      this.svg.removeAttribute('height');
      this.append(this.picture, controls, this.words);
      this.setAttribute('tabindex', '0');
      this.setAttribute('role', 'group');
      this.setAttribute('aria-label', 'timeline: plus and minus zoom, arrow keys move, a bar says what it is');
      this.words.textContent = 'Point at a bar, or tap it: its call, bytes and time.';
      const says = (event) => {
        const title = event.target.querySelector ? event.target.querySelector(':scope > title') : null;
        if (title) this.words.textContent = title.textContent;
      };
      this.svg.addEventListener('click', says);
      this.svg.addEventListener('pointerover', says);
      this.svg.addEventListener('focusin', says);
      this.view(0, 1);
    }

    view(from, part) {
      this.part = Math.min(Math.max(part, 1 / 64), 1);
      this.from = Math.min(Math.max(from, 0), 1 - this.part);
      // The picture is drawn wider, and the page shows a part of it. Text keeps its shape.
      this.svg.style.width = `${100 / this.part}%`;
      this.picture.scrollLeft = this.from * this.picture.scrollWidth;
    }

    zoom(factor) {
      const middle = (this.picture.scrollLeft + this.picture.clientWidth / 2) / this.picture.scrollWidth;
      this.view(middle - this.part / factor / 2, this.part / factor);
    }

    move(by) {
      this.picture.scrollLeft += by * this.picture.clientWidth;
    }
  }

  customElements.define('nccl-figure', NcclFigure);
})();
