/*
 * report.c: what was said once is not said again; places in words.
 */
#include "say/report.h"

void reports_free(struct reports *reports) {
    map_clear(&reports->hosts, free);
    map_clear(&reports->places, free);
    map_free(&reports->said);
    free(reports);
}

const char *place(struct judge *j, uint64_t site) {
    char *known = map_get(&j->reports->places, site);
    if (site && !known) {
        map_put(&j->reports->places, site, known = must_alloc(JUDGE_PLACE));
        j->outside.place(j->outside.self, site, known);
    }
    return site ? known : "an unknown place";
}

void rank_heard(struct judge *j, int world, const char *host) {
    if (map_get(&j->reports->hosts, (uint64_t)world))
        return;
    char *copy = must_alloc(JUDGE_HOST);
    memcpy(copy, host, JUDGE_HOST - 1);
    map_put(&j->reports->hosts, (uint64_t)world, copy);
}

const char *rank_host(struct judge *j, int world) {
    const char *host = map_get(&j->reports->hosts, (uint64_t)world);
    return host ? host : "?";
}

bool judge_fails(const struct judge *j) {
    return j->reports->fails;
}

bool said_at(const struct judge *j, uint64_t site) {
    return site && (j->reports->newest == site || j->reports->other == site);
}

bool reported(const struct judge *j, uint64_t key) {
    return key && map_get(&j->reports->said, key);
}

void report(struct judge *j, struct text *text, bool end, uint64_t key) {
    bool again = reported(j, key);
    if (key)
        map_put(&j->reports->said, key, j);
    if (!j->over && j->options.mode != JUDGE_OFF && !again) {
        j->over = end;
        j->outside.say(j->outside.self, text->at, end, key);
    }
    free(text->at);
    *text = (struct text){0};
}
