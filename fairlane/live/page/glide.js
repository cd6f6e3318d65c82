// Time as the page shows it while a run goes on: it moves steadily towards the last sample that came, and never past it. So the picture goes on
// in each frame, however seldom updates come, and shows nothing that is not known: it is about one update behind.

// Updates that are late by half of their interval do not stop it.
const LATE = 1.5;
// Milliseconds: what updates are expected to take at first, and the longest that is waited for.
const FIRST = 100;
const LONGEST = 2000;

export const glide = {
  from: 0,
  last: 0,
  since: 0,
  interval: FIRST,
  came: null,

  // After a pause, or with another speed: how often updates come is not known.
  begin() {
    this.interval = FIRST;
    this.came = null;
  },

  // `time` is the last sample's, known since `now` (milliseconds).
  to(time, now) {
    // What the pace has lost meanwhile is not made up for.
    this.from = this.came === null ? this.last || time : this.at(now);
    if (this.came !== null) this.interval += 0.2 * (Math.min(LONGEST, now - this.came) - this.interval);
    [this.last, this.since, this.came] = [time, now, now];
  },

  at(now) {
    return this.from + (this.last - this.from) * Math.max(0, Math.min(1, (now - this.since) / (LATE * this.interval)));
  },
};
