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
      this.classList.add('live');
      if (this.data.timeline) this.makeTimeline();
      else this.makeSteps();
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
      const end = button('▶|', () => this.go(this.last));
      end.setAttribute('aria-label', 'to the end');
      controls.append(this.back, this.next, end);
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
      controls.append(make('span', {class: 'keys'}, 'or the keys ← →'));
      this.append(this.picture, controls, this.words);
      this.setAttribute('tabindex', '0');
      this.setAttribute('role', 'group');
      this.setAttribute('aria-label', 'figure in steps: arrow keys go back and on');
      this.choose(this.run);
    }

    // At the same step as before, or at the end if it was there: so runs can be compared.
    choose(run) {
      this.pause();
      const end = this.step > 0 && this.step === this.last;
      this.run = run;
      this.picture.innerHTML = this.data.runs[run].svg;
      this.go(end ? this.last : this.step);
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
      // A button that is disabled loses the focus; then the keys would no longer be the figure's.
      const focused = document.activeElement;
      this.back.disabled = this.step === 0;
      this.next.disabled = this.step === this.last;
      if (focused && focused.disabled && this.contains(focused)) this.focus({preventScroll: true});
      if (this.step === this.last) this.pause();
      this.follow();
    }

    // A picture that is wider than the screen is moved to what this step adds.
    follow() {
      const frame = this.picture;
      if (frame.scrollWidth <= frame.clientWidth) return;
      const added = [...frame.querySelectorAll(`[data-from="${this.step}"]`)].filter((group) => group.style.display !== 'none');
      if (!this.step || !added.length) {
        frame.scrollLeft = 0;
        return;
      }
      const framed = added.flatMap((group) => [...group.querySelectorAll('.thick')]);
      const boxes = (framed.length ? framed : added).map((element) => element.getBoundingClientRect());
      const [left, right] = [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
      const at = frame.getBoundingClientRect();
      const wide = right - left > at.width;
      frame.scrollLeft += wide ? left - at.left - 8 : (left + right) / 2 - (at.left + at.right) / 2;
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

    // --- Timelines: time is drawn wider or narrower. Names, heights and letters stay as they are, at the left and in place.

    makeTimeline() {
      const button = (text, name, does) => make('button', {type: 'button', 'aria-label': name, onclick: does}, text);
      const controls = make('div', {class: 'buttons'},
        button('+', 'zoom in', () => this.zoom(2)), button('−', 'zoom out', () => this.zoom(0.5)),
        button('◀', 'earlier', () => this.move(-0.25)), button('▶', 'later', () => this.move(0.25)),
        button('all', 'the whole time', () => this.view(0, 1)),
        make('span', {class: 'keys'}, 'or the keys + − ← →'));
      const parsed = make('div', {});
      parsed.innerHTML = this.data.timeline;
      this.svg = parsed.querySelector('svg');
      const of = this.svg.dataset;
      this.drawn = {left: Number(of.left), wide: Number(of.wide), top: Number(of.top), time: Number(of.time)};
      this.drawn.high = this.svg.viewBox.baseVal.height - this.drawn.top;
      // On a slide as large as there is room for.
      this.large = this.closest('.reveal') ? Math.min(1.6, 440 / this.drawn.high) : 1;
      this.svg.querySelector('.paper').remove();
      const names = this.svg.cloneNode(false);
      names.setAttribute('aria-hidden', 'true');
      names.append(this.svg.querySelector('.names'));
      this.frame = make('div', {class: 'time'}, this.svg);
      this.picture.append(names, this.frame);
      this.append(controls, this.key_of(this.svg), this.picture, this.words);
      // On a slide that is not shown yet nothing has a size.
      const box = names.getBBox();
      this.place(names, 0, box.width ? Math.ceil(box.width + box.x + 10) : this.drawn.left);
      this.rows = [...this.svg.querySelectorAll('.row')];
      this.bars = [...this.svg.querySelectorAll('.bars rect')].map((rect) => (
        {rect, x: Number(rect.getAttribute('x')) - this.drawn.left, wide: Number(rect.getAttribute('width')),
          y: Number(rect.getAttribute('y')) + Number(rect.getAttribute('height')) / 2 + 4,
          names: rect.dataset.label ? rect.dataset.label.split('|') : []}));
      this.arrows = [...this.svg.querySelectorAll('.bars .arrow')].map((path) => (
        {path, at: path.getAttribute('d').match(/[\d.]+/g).slice(0, 4).map(Number)}));
      for (const text of this.svg.querySelectorAll('.bars text')) text.remove();
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
      window.addEventListener('resize', () => this.view(this.frame.scrollLeft / this.frame.scrollWidth, this.part));
    }

    // What the colours mean, and whose times these are: words of the picture, which may need several lines.
    key_of(svg) {
      const key = make('p', {class: 'legend'});
      for (const part of svg.querySelectorAll('.legend > *')) {
        if (part.tagName === 'rect') {
          const box = svg.cloneNode(false);
          box.setAttribute('viewBox', '0 0 14 14');
          box.setAttribute('aria-hidden', 'true');
          const rect = part.cloneNode();
          rect.setAttribute('x', 0);
          rect.setAttribute('y', 0);
          box.append(rect);
          key.append(make('span', {class: 'item'}, box));
        } else if (part.classList.contains('clock')) key.append(make('span', {class: 'item'}, part.textContent));
        else key.lastChild.append(part.textContent);
      }
      return key;
    }

    place(svg, x, wide) {
      svg.setAttribute('viewBox', `${x} ${this.drawn.top} ${wide} ${this.drawn.high}`);
      svg.style.setProperty('--wide', `${wide * this.large}px`);
      svg.style.setProperty('--high', `${this.drawn.high * this.large}px`);
    }

    // The part [from, from + part] of the whole time is shown.
    view(from, part) {
      this.part = Math.min(Math.max(part, 1 / 64), 1);
      this.from = Math.min(Math.max(from, 0), 1 - this.part);
      const all = Math.max(this.frame.clientWidth / this.large || this.drawn.wide, 480);
      // To the right of the last moment there is room for its name.
      this.draw((all - 24) / this.part);
      this.frame.scrollLeft = this.from * this.frame.scrollWidth;
    }

    draw(wide) {
      const scale = wide / this.drawn.wide;
      this.place(this.svg, -4, wide + 24);
      for (const old of this.svg.querySelectorAll('.label, .ticks > *')) old.remove();
      for (const row of this.rows) row.setAttribute('d', `M-4 ${row.dataset.y}H${wide}`);
      this.ticks(wide);
      for (const bar of this.bars) {
        const long = Math.max(bar.wide * scale, 0.6);
        bar.rect.setAttribute('x', bar.x * scale);
        bar.rect.setAttribute('width', long);
        const name = bar.names.find((one) => one.length * 6.4 + 4 <= long);
        if (name) bar.rect.parentNode.append(this.text('label', bar.x * scale + long / 2, bar.y, name));
      }
      for (const {path, at: [x0, y0, x1, y1]} of this.arrows) {
        const [a, b] = [(x0 - this.drawn.left) * scale, (x1 - this.drawn.left) * scale];
        const long = Math.hypot(b - a, y1 - y0) || 1;
        const [dx, dy] = [(b - a) / long * 6, (y1 - y0) / long * 6];
        path.setAttribute('d', `M${a} ${y0}L${b} ${y1}M${b - dx + dy / 2} ${y1 - dy - dx / 2}L${b} ${y1}L${b - dx - dy / 2} ${y1 - dy + dx / 2}`);
      }
    }

    text(names, x, y, words) {
      const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      text.setAttribute('class', names);
      text.setAttribute('x', x);
      text.setAttribute('y', y);
      text.textContent = words;
      return text;
    }

    // Marks of 1, 2 or 5 times a power of ten, so far apart that their names fit.
    ticks(wide) {
      const [unit, of] = this.drawn.time > 2000 ? ['ms', 1000] : ['µs', 1];
      const least = 70 / wide * this.drawn.time;
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= least);
      const group = this.svg.querySelector('.ticks');
      const bottom = this.drawn.top + this.drawn.high - 26;
      for (let k = 0; k * step <= this.drawn.time * 1.0001; k++) {
        const x = k * step / this.drawn.time * wide;
        const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
        line.setAttribute('class', 'grid');
        line.setAttribute('d', `M${x} ${this.drawn.top}V${bottom}`);
        const word = `${Number((k * step / of).toPrecision(6))} ${unit}`;
        group.append(line, this.text('ink time', Math.min(Math.max(x, word.length * 4), wide + 20 - word.length * 4), bottom + 16, word));
      }
    }

    zoom(factor) {
      const middle = (this.frame.scrollLeft + this.frame.clientWidth / 2) / this.frame.scrollWidth;
      this.view(middle - this.part / factor / 2, this.part / factor);
    }

    move(by) {
      this.frame.scrollLeft += by * this.frame.clientWidth;
    }
  }

  customElements.define('nccl-figure', NcclFigure);
})();
