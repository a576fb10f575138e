// What the search shows first. Read by Sphinx into its searchtools.js; course-words.js has the words of all pages.
const asked = (new URLSearchParams(location.search).get('q') || '').toLowerCase().match(/[\w-]+/g) || [];

// A page explains what it names often. Lessons and the glossary explain, results and changes only mention.
function explains(page) {
    const text = ((window.courseWords || {})[page] || '').toLowerCase();
    const times = asked.reduce((sum, word) => sum + text.split(word).length - 1, 0);
    const kind = /^\d\d-[^/]*\/index$/.test(page) ? 20 : page === 'common/glossary' ? 12 : /^(results|book)\/|^CHANGELOG/.test(page) ? -20 : 0;
    return 5 * Math.min(times, 30) + kind;
}

var Scorer = {
    score: ([page, , , , score]) => score + explains(page),
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: {0: 15, 1: 5, 2: -5},
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
