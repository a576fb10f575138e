// The predict exercises as questions in the page. An answer is judged as `make exercise` judges it:
// same_answer in exercises/lib/Answer.pm, and the same words are said.
'use strict';

(() => {
    const BYTES = {'': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40};
    const SECONDS = {'': 1, m: 1e-3, u: 1e-6, n: 1e-9};

    // The numbers of a text, with their units: "4 KiB" is {number: 4, kind: 'bytes', worth: 1024}.
    function numbers(text) {
        const found = [];
        const unit = /(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:([kmgt]i?|)b(?:ytes?)?\b|([mun]?)s(?:ec(?:onds)?)?\b)?/g;
        for (const [, number, bytes, seconds] of text.toLowerCase().replace(/[µμ]/g, 'u').matchAll(unit)) {
            const kind = bytes !== undefined ? 'bytes' : seconds !== undefined ? 'seconds' : '';
            const worth = kind === 'bytes' ? BYTES[bytes] : kind === 'seconds' ? SECONDS[seconds] : 1;
            found.push({number: Number(number), kind, worth});
        }
        return found;
    }

    // What a given number may mean, where one of the wanted kind is asked for.
    function meanings(given, wanted) {
        if (given.kind === 'bytes' || given.kind && wanted.kind)
            return [given.number * given.worth];
        const means = [given.number * wanted.worth];
        if (!given.kind && wanted.kind === 'bytes')
            means.push(given.number);
        return means;
    }

    function sameAnswer(text, answer, within) {
        const wanted = numbers(answer);
        if (!wanted.length) {
            const words = text.toLowerCase().match(/\b[a-z]\b/g) || [];
            return words.length === 1 && words[0] === answer.toLowerCase();
        }
        let rest = text.replace(/[a-z]+ *\d+ *[:=]/gi, '');
        if (wanted.length === 1)
            rest = rest.replace(/.*=(?=.*\d)/s, '').replace(/(\d)[,_' ](?=\d{3}(?!\d))/g, '$1');
        const given = numbers(rest);
        return given.length === wanted.length && given.every((one, i) => {
            const asked = wanted[i];
            if (one.kind && asked.kind && one.kind !== asked.kind)
                return false;
            const goal = asked.number * asked.worth;
            return meanings(one, asked).some(value => Math.abs(value - goal) <= Math.abs(goal) * (within + 1e-9));
        });
    }

    function judge(quiz, given) {
        const within = parseFloat(quiz.within) / 100;
        if (sameAnswer(given, quiz.answer, within))
            return {solved: true, text: `Solved. ${quiz.learned}\n${quiz.why}`};
        const known = quiz.wrong.find(one => sameAnswer(given, one.answer, within));
        if (known)
            return {solved: false, text: `No, not ${given}. ${known.says}`};
        const came = numbers(given).length;
        if (numbers(quiz.answer).length === 1 && came > 1)
            return {solved: false, text: `No, not ${given}. This has ${came} numbers, and one is asked for. Write that one only, such as 2.5 (with a point).`};
        return {solved: false, text: `No, not ${given}. ${quiz.otherwise || 'The hints go step by step.'}`};
    }

    function start(form) {
        const quiz = JSON.parse(form.querySelector('script').textContent);
        const output = form.querySelector('output');
        const hinted = form.querySelector('.quiz-hinted');
        let hints = 0;
        const say = (text, how) => {
            output.className = how;
            output.textContent = text;
        };
        form.addEventListener('submit', event => {
            event.preventDefault();
            const given = String(new FormData(form).get(form.id) || '').trim();
            if (!given)
                return say('There is no answer yet.', '');
            const result = judge(quiz, given);
            say(result.text, result.solved ? 'right' : 'wrong');
        });
        // What was said is about the answer before.
        form.addEventListener('input', () => say('', ''));
        form.querySelector('.quiz-hint').addEventListener('click', () => {
            const number = hints % quiz.hints.length;
            hints++;
            hinted.textContent = `Hint ${number + 1} of ${quiz.hints.length}: ${quiz.hints[number]}`;
        });
    }

    document.querySelectorAll('form.quiz').forEach(start);
})();
