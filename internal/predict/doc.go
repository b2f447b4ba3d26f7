// Package predict says how far the prediction of a migration may be off.
//
// A model predicts one time. [Learn] reads how far such predictions were off when migrations
// were measured, class by class; [Errors.Of] turns a further prediction into a distribution:
//
//	predicted time ──► × measured/predicted of the class ──► p10, p50, p90
//
// A class is the mechanism that governs a migration. Three rules keep a range
// honest:
//
//   - A class with fewer than [Enough] measurements gets the range of all that it has, and at
//     least that of all classes together.
//   - A class that was never measured says so, and its range is [Unknown] times up and down.
//   - No time is below what physics allows: bytes over bandwidth.
//
// [HoldOut] is the judge: each experiment is predicted by ranges that were learned from the
// others, and the share of measurements between p10 and p90 is counted.
//
// The package is pure, and knows no hypervisor.
package predict
