// Under each result of the search, the place of the page that it was found for. The pages' words are in
// course-words.js, because a page opened from a folder may not fetch another one.
'use strict';

(() => {
    const words = new URLSearchParams(location.search).get('q')?.toLowerCase().match(/[\w-]+/g);
    const results = document.getElementById('search-results');
    if (!words || !results)
        return;
    const top = new URL('.', location.href).href;

    function excerpt(text) {
        const low = text.toLowerCase();
        const found = words.map(word => low.indexOf(word)).filter(at => at >= 0);
        if (!found.length)
            return null;
        const from = Math.max(0, low.lastIndexOf(' ', Math.min(...found) - 80) + 1);
        const piece = text.slice(from, from + 220);
        const shown = document.createElement('p');
        shown.className = 'context';
        shown.append(from ? '… ' : '');
        const marked = new RegExp(`(${words.join('|')})`, 'gi');
        piece.split(marked).forEach((part, i) => {
            const node = i % 2 ? document.createElement('mark') : document.createElement('span');
            node.textContent = part;
            shown.append(node);
        });
        shown.append(' …');
        return shown;
    }

    function complete() {
        results.querySelectorAll('ul.search > li:not([data-seen])').forEach(item => {
            item.dataset.seen = 'yes';
            const link = item.querySelector('a');
            const page = link && link.href.slice(top.length).replace(/\.html.*/, '');
            const shown = page && window.courseWords[page] && excerpt(window.courseWords[page]);
            if (shown)
                item.append(shown);
        });
    }

    new MutationObserver(complete).observe(results, {childList: true, subtree: true});
    complete();
})();
