// Package report makes one self-contained page of what happened in a simulated world.
//
//	[Recorder] (while it runs) ──► [Document] (what the page shows) ──► HTML
//
// The caller (1) attaches a recorder to a world's configuration with [Record], before the
// world is built, (2) asks for its [Document] when the world has run, and (3) writes the page
// with [Document.WriteHTML]. The document of a sweep needs no recorder: see [Sweep].
//
// The page needs no network and runs nothing but what is written in it: its content security
// policy names its scripts and its style by their sums. The document is in the page as JSON,
// and its figures are those of [sim.Result]. Names come from the input and are never taken
// for markup. The charts are drawn by Apache ECharts; see echarts/VERSION.
//
// The page is bounded: a run of any length becomes at most a few hundred buckets of time, and
// of more than [MaxListed] migrations it lists the telling ones, and says so. Figures,
// distributions and everything over time count all of them.
//
// This package decides nothing, and the recorder changes nothing in the world.
package report
