// Package convergence decides what to do about a running transfer so that it
// ends: nothing, another downtime limit, post-copy, a pause, or giving up.
//
// [Converge] maps a [Config], a stored [State] and one look at the transfer to
// the next State and a [Decision]. It moves no memory, reads no clock and waits
// for nothing. A caller
//
//  1. looks every few hundred milliseconds and whenever a pass ends; until [State].Calm the
//     ends of passes are enough,
//  2. stores the new State, and only then carries out the Decision,
//  3. tells the State the hypervisor's answer: [State.Accepted] or
//     [State.Refused], and stores that, too.
//
// It may look once before it begins the transfer, as at one that has just begun: a limit that
// it is told to set may go along with the request, and is then accepted with it.
//
// A decision without an answer counts as refused: it is asked for again, and
// every decision may be carried out twice. What the transfer itself shows (that
// it is paused, or in post-copy) counts as accepted, so a lost answer is safe.
//
// # Methods
//
// [Watermark], the zero value, is godwit's own. [Legacy] is KubeVirt's default
// monitor and [Stall] its stall detector (VEP 248); they exist so that fleets
// can be compared and moved over. Where Watermark differs from Legacy on
// purpose; Method: Legacy restores all of it:
//
//   - Progress. Legacy takes any decrease against the previous sample for
//     progress, so a transfer that swings without converging passes for healthy.
//     Watermark asks two questions. Does data move: more sent, a new pass, or a
//     new low in this pass? Does the backlog at the start of a pass reach a new
//     low? Throttling that still rises is patience, not a stall.
//   - Budget. Legacy counts decimal gigabytes of the VM's size. Watermark counts
//     GiB, and from the end of the first pass allows what the data that was
//     really there is worth, never more than the size is worth. Both count the
//     disks that are copied before memory.
//   - Downtime. Legacy leaves the hypervisor's 300 ms unless it tunes. Watermark
//     always sets the limit, raises it in steps, and never above MaxDowntime
//     without AllowWorkloadDisruption.
//   - Post-copy. Legacy starts it only after the budget and only together with
//     AllowWorkloadDisruption. Watermark starts it when the transfer has stalled,
//     when the rest will soon no longer fit into the budget, or when the budget is
//     used up; AllowPostCopy alone permits it, and never while no data moves.
//   - Pause. Legacy pauses when the budget is used up and doubles it. Watermark
//     pauses when a pass begins, because then the least is left, while that still fits
//     into the budget. Where no pass began in time it pauses at the end of the budget, if
//     the rest fits into as much again: what the pass still has to send, and what was
//     dirtied since the pass began. A guest that is paused is never given up while data moves.
//   - Stalls. Legacy carries a transfer that cannot end to the end of its budget.
//     Watermark gives up when it has stalled and nothing that is allowed helps.
//   - Refusals. Legacy asks for a refused remedy for ever. Watermark asks for
//     post-copy, a pause or the whole downtime three times and then does without;
//     a cancel is asked for until it is accepted.
//
// # Where Legacy and Stall differ from KubeVirt
//
// One look gives one verdict. Where KubeVirt sets a downtime limit and acts in
// the same tick, the action comes first and the limit with the next look; no
// limit is set in post-copy or while a cancel is under way, where it has no
// effect. The stall detector remembers at most 64 minima and as many
// backlogs; KubeVirt's history grows without bound. Amounts below zero count as
// zero, and in Stall and Watermark a clock that goes back stands still.
//
// In code (the example of [Converge] runs):
//
//	next, verdict := convergence.Converge(config, state, progress, now)
//	state = next // store it first
//	switch verdict.Action {
//	case convergence.StartPostCopy:
//		err = host.Adjust(ctx, job, hypervisor.StartPostCopy{})
//	case convergence.Abort:
//		err = host.Adjust(ctx, job, hypervisor.Cancel{})
//	}
//
// # Convergence by forecast
//
// This part brings transfers to an end by looking ahead: it is godwit's fastest
// [Policy].
//
// Watermark raises the downtime limit by the clock, and waits for a stall before
// it helps. But two passes tell already: what a guest dirties during a pass depends on how
// long the pass was, so when a pass leaves about as much as the one before, so will the
// next. Then more passes cost time and bytes and buy nothing, and [ConvergeByForecast]
//
//   - allows the downtime that the rest takes now, if that is allowed at all,
//   - else begins post-copy, if that is allowed,
//   - else allows the whole downtime, so that the first quiet moment ends the transfer, and
//     leaves patience, budgets and giving up to Watermark.
//
// While passes still shrink the limit stays low: another short pass costs less than a
// longer downtime.
package convergence
