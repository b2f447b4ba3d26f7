// Testrun is what make test and make test-all run: the checks of style and the
// two tiers of tests, in stages, with a table of how long each took.
//
//	go run -C internal/tools ./testrun             the default tier
//	go run -C internal/tools ./testrun -tier all   the default tier, and then the long one
//
// The long tier does not repeat what the default tier has passed on the same commit
// of a clean checkout. It runs again only the tests that said, while they ran or were
// skipped, that they do more in the long tier.
//
// The race detector is on for every package with a goroutine, a lock or an atomic
// variable in its code or its tests, but for long tests that call testutil.Unraced: nothing in
// them is concurrent, or a shorter test runs the same. Their packages are also tested without it. In the long tier it is on for all packages
// and tests.
//
// The programs of tests are kept in the output folder, so that the next run links only those whose code has
// changed. It prints the line of go test for each package, everything that a failed test has
// said, the ten slowest packages, the ten that use the processors most, the 20 slowest tests, what ran for real, what was skipped and why, and
// the stages with their seconds. The tests of real processes run beside the other stages: they
// mostly wait. The exit status is 1 if anything failed.
package main
