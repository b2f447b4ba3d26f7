package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

// calendarFlags say in which nights hosts may be serviced.
type calendarFlags struct {
	windows    []string
	nights     int
	zone, from string
	by         string
	confidence string
}

func (f *calendarFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.windows, "window", nil, "service hosts within this `WINDOW` only, as \"22:00-02:00 Sat,Sun\";\n"+
		"repeat it for more")
	flags.IntVar(&f.nights, "nights", 1, "there are this `NUMBER` of nights")
	flags.StringVar(&f.zone, "zone", "Local", "the `ZONE` of windows, --from and --by, as Europe/Berlin")
	flags.StringVar(&f.from, "from", "", "begin at this `TIME`, as \"2026-11-28 20:00\" (default: now)")
	flags.StringVar(&f.by, "by", "", "be finished at this `TIME`, with the lowest limits that do it")
	flags.StringVar(&f.confidence, "confidence", "95%", "required `PROBABILITY` that a batch ends in its night")
}

// useless returns an error when a flag says something of windows, and there are none.
func (f *calendarFlags) useless(flags *pflag.FlagSet) error {
	if len(f.windows) > 0 {
		return nil
	}
	for _, name := range []string{"nights", "zone", "from", "by", "confidence"} {
		if flags.Changed(name) {
			return fmt.Errorf("--%s needs --window: write --window \"22:00-02:00 Sat,Sun\"", name)
		}
	}
	return nil
}

// A calendarGoal is what the flags ask for.
type calendarGoal struct {
	nights     []plan.Night
	confidence float64
	search     bool // for limits
}

// clockFormat is how times are written in flags.
const clockFormat = "2006-01-02 15:04"

// goal reads the flags; nil is that no windows were given.
func (f *calendarFlags) goal(now time.Time) (*calendarGoal, error) {
	if len(f.windows) == 0 {
		return nil, nil
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return nil, fmt.Errorf("--zone %q is not a zone: write Europe/Berlin", f.zone)
	}
	begin := now.In(zone).Truncate(time.Minute)
	if f.from != "" {
		if begin, err = time.ParseInLocation(clockFormat, f.from, zone); err != nil {
			return nil, fmt.Errorf("--from %q is not a time: write \"2026-11-28 20:00\"", f.from)
		}
	}
	if f.nights < 1 || f.nights > 1000 {
		return nil, fmt.Errorf("--nights %d: give a number from 1 to 1000", f.nights)
	}
	var windows []plan.Window
	for _, text := range f.windows {
		w, err := plan.ParseWindow(text)
		if err != nil {
			return nil, fmt.Errorf("--window: %w", err)
		}
		windows = append(windows, w)
	}
	g := &calendarGoal{nights: plan.Nights(windows, begin, f.nights), search: f.by != ""}
	if g.confidence, err = probability(f.confidence); err != nil {
		return nil, fmt.Errorf("--confidence %w", err)
	}
	return g, g.until(f.by, zone)
}

// until leaves out what is after the end.
func (g *calendarGoal) until(by string, zone *time.Location) error {
	if by == "" {
		return nil
	}
	end, err := time.ParseInLocation(clockFormat, by, zone)
	if err != nil {
		return fmt.Errorf("--by %q is not a time: write \"2026-12-06 06:00\"", by)
	}
	for i, n := range g.nights {
		if !n.Begin.Before(end) {
			g.nights = g.nights[:i]
			break
		}
		if n.End.After(end) {
			g.nights[i].End = end
		}
	}
	if len(g.nights) == 0 {
		return fmt.Errorf("--by %s: no night begins before", by)
	}
	return nil
}

// probability reads a probability, as 95%.
func probability(text string) (float64, error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is not a probability: write 95%%", text)
	}
	return percent / 100, nil
}

// search plans with ever smaller batches, and with ever higher limits where they are looked for, until
// all batches are in a night. It returns the last plan when none is.
func (f *calendarFlags) search(ctx context.Context, s *config.Scenario, together int,
	play func(*config.Scenario, int) (*maintenanceAnswer, error), service time.Duration) (*maintenanceAnswer, error) {
	goal, err := f.goal(time.Now())
	if err != nil {
		return nil, err
	}
	if goal == nil {
		return play(s, together)
	}
	p := &whatif.Play{Scenario: s}
	var first *maintenanceAnswer
	for _, settings := range goal.limits(p.Present()) {
		a, err := goal.fit(p.With(settings, nil).Scenario, together, play, service)
		if err != nil || len(a.Calendar.Left) == 0 {
			return a, err
		}
		if first == nil {
			first = a
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return first, nil
}

// limits lists the limits that are tried, the lowest first.
func (g *calendarGoal) limits(present whatif.Settings) []whatif.Settings {
	all := []whatif.Settings{present}
	if !g.search {
		return all
	}
	for factor := 2; factor <= 16; factor *= 2 {
		next := present
		next.PerCluster, next.PerSource = factor*present.PerCluster, factor*present.PerSource
		all = append(all, next)
	}
	if present.Bandwidth > 0 {
		next := all[len(all)-1]
		next.Bandwidth = 0
		all = append(all, next)
	}
	return all
}

// fit plans with smaller batches as long as one is too long for every night.
func (g *calendarGoal) fit(s *config.Scenario, together int,
	play func(*config.Scenario, int) (*maintenanceAnswer, error), service time.Duration) (*maintenanceAnswer, error) {
	for {
		a, err := play(s, together)
		if err != nil {
			return nil, err
		}
		a.Calendar = a.Times.Calendar(g.nights, g.confidence, service)
		most := 0
		for i := range a.Batches {
			most = max(most, len(a.Batches[i].Hosts))
		}
		if len(a.Calendar.Left) == 0 || !a.Calendar.Left[0].Long || most <= 1 || a.Calendar.Left[0].Batch > len(a.Batches) {
			return a, nil
		}
		together = (most + 1) / 2
	}
}
