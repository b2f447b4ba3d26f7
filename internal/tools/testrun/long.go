package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// longTests runs again the tests that do more in the long tier, twice as many packages at once
// as there are processors: those of real processes mostly wait. They come first: they take longest. Only
// these have the race detector: exhaustive tests do a part of their work under it, or none.
func (s *suite) longTests(ctx context.Context) (ok bool, err error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	long := s.setLong(map[string][]string{})
	ordered := slices.SortedStableFunc(slices.Values(s.packages), func(a, b pkg) int {
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(len(long[b.path]), len(long[a.path])))
	})
	var failed atomic.Bool
	var all errgroup.Group
	all.SetLimit(2 * runtime.NumCPU())
	for _, p := range ordered {
		for k, tests := range p.byKind(long[p.path]) {
			for _, part := range p.parts(tests) {
				if ctx.Err() != nil {
					break
				}
				all.Go(func() error {
					fine, err := s.test(ctx, selection{k, "long", only(part)}, []string{p.path})
					failed.CompareAndSwap(false, !fine)
					return err
				})
			}
		}
	}
	err = all.Wait()
	s.setLong(long)
	return err == nil && !failed.Load(), err
}

// byKind says of tests of a package as which kind the long tier runs them.
func (p pkg) byKind(tests []string) map[kind][]string {
	kinds := map[kind][]string{}
	for _, test := range tests {
		k := p.kind
		if root, _, _ := strings.Cut(test, "/"); k == racing || slices.Contains(p.unraced, root) {
			k = plain
		}
		kinds[k] = append(kinds[k], test)
	}
	return kinds
}

// large is how many cases a test has that the long tier runs beside the other tests of its package.
const large = 50

// parts splits tests of a package that starts real processes, which mostly wait: a test with many cases, as a
// conformance suite is, runs beside the others.
func (p pkg) parts(tests []string) (parts [][]string) {
	if p.kind != real {
		return [][]string{tests}
	}
	cases := map[string][]string{}
	for _, test := range tests {
		root, _, _ := strings.Cut(test, "/")
		cases[root] = append(cases[root], test)
	}
	var others []string
	for _, root := range sorted(cases) {
		if all := cases[root]; len(all) >= large {
			parts = append(parts, all)
		} else {
			others = append(others, all...)
		}
	}
	if len(others) > 0 {
		parts = append(parts, others)
	}
	return parts
}

// setLong sets which tests do more in the long tier, and returns which did before.
func (s *suite) setLong(tests map[string][]string) (before map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.long = s.long, tests
	return before
}

// only is a pattern that matches these tests, by their full names, and nothing else.
func only(tests []string) string {
	var all []string
	for _, test := range tests {
		var parts []string
		for part := range strings.SplitSeq(test, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// raceAgain tests with the race detector what the default tier tests without it, where a package
// that is imported is concurrent, and with more cases what it tests with few. Of packages of real
// processes it runs what the default tier runs without the race detector only. It takes a sample of each commit, one
// package in three: the default tier runs what is concurrent itself, in every commit.
func (s *suite) raceAgain(ctx context.Context) (bool, error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	var paths []string
	ok, left := true, 0
	for _, p := range s.packages {
		switch {
		case p.kind == real && len(p.unraced) == 0 || p.kind == plain && !p.shares:
		case !testutil.LongSampled("race "+p.path, 3):
			left++
		case p.kind != real:
			paths = append(paths, p.path)
		default:
			fine, err := s.test(ctx, selection{racing, "again", only(p.unraced)}, []string{p.path})
			if err != nil {
				return false, err
			}
			ok = ok && fine
		}
	}
	if left > 0 {
		fmt.Fprintf(s.w, "%d packages are not in this commit's sample of one in three; GODWIT_LONG=all tests all\n", left)
	}
	if len(paths) == 0 {
		return ok, nil
	}
	fine, err := s.test(ctx, selection{kind: racing, tier: "again"}, paths)
	return ok && fine, err
}

// fuzzTargets runs every fuzz target for a moment, as many at once as there are processors: each
// is linked anew, which takes one of them longer than the moment.
func (s *suite) fuzzTargets(ctx context.Context) (ok bool, err error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	var failed atomic.Bool
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for _, p := range s.packages {
		for _, target := range p.fuzz {
			all.Go(func() error {
				var said []byte
				var err error
				for range 3 {
					said, err = command(ctx, "go", "test", "-tags", s.tags, "-vet=off", "-run", "^$",
						"-fuzz", "^"+target+"$", "-fuzztime", s.fuzz.String(), "-parallel", "1",
						p.path).CombinedOutput()
					if err == nil || !endsLate(said) {
						break
					}
				}
				failed.CompareAndSwap(false, err != nil)
				s.mu.Lock()
				defer s.mu.Unlock()
				fmt.Fprintf(s.w, "%s %s\n%s", p.path, target, said)
				return ctx.Err()
			})
		}
	}
	err = all.Wait()
	return err == nil && !failed.Load(), err
}

// endsLate reports whether the go command has failed a fuzz target for its own deadline, with no input that fails.
// Source: go.dev/issue/75804, mended in Go 1.27.
func endsLate(said []byte) bool {
	return bytes.Contains(said, []byte("\n    context deadline exceeded\n")) && !bytes.Contains(said, []byte("Failing input written"))
}

// benchmarks runs every benchmark once.
func (s *suite) benchmarks(ctx context.Context) (bool, error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	args := []string{"go", "test", "-tags", s.tags, "-vet=off", "-p", "1", "-timeout", "30m",
		"-run", "^$", "-bench", ".", "-benchtime", "1x"}
	for _, p := range s.packages {
		if p.benches {
			args = append(args, p.path)
		}
	}
	return runs(args...)(ctx)
}

// passedTier is what the default tier leaves for the long one.
type passedTier struct {
	Tree string              // the commit
	Long map[string][]string // the tests that do more in the long tier
}

// treeID names the commit that is checked out. It is empty if files differ from it.
func treeID(ctx context.Context) string {
	changed, err := output(ctx, "git", "status", "--porcelain")
	if err != nil || len(changed) > 0 {
		return ""
	}
	commit, err := output(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(commit))
}

// readPassed tells whether the default tier has passed on a tree.
func readPassed(path, tree string) (p passedTier, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil || tree == "" || json.Unmarshal(text, &p) != nil {
		return p, false
	}
	return p, p.Tree == tree
}

func writePassed(path string, p passedTier) {
	text, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fmt.Println("what has passed is not noted:", err)
	}
}
