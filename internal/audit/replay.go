package audit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/store"
)

// Options say how a log is replayed.
type Options struct {
	// Configure reads the configuration that is in the log; a caller that wants another one
	// ignores the text. It must be set.
	Configure func(text string) (controller.Config, error)
	// Begin makes what decides. Default: controller.New.
	Begin func(controller.Config, store.Store, store.EventRecorder) store.Participant
	// Build names the program that replays.
	Build string
	// All goes on after a difference: see [Result.Further].
	All bool
}

// MostFurther is how many differences are told after the first.
const MostFurther = 20

// A Result is what a replay has found.
type Result struct {
	Terms   int `json:"terms"`   // controllers that began
	Looks   int `json:"looks"`   // that were replayed
	Writes  int `json:"writes"`  // that were compared
	Skipped int `json:"skipped"` // lines of looks that began in another file
	// Wakes is how many looks want the next at another time than was wanted, and Words how
	// many say something else: no decision, but not the same.
	Wakes int `json:"wakes"`
	Words int `json:"words"`
	// Recorded is who wrote the log, one after another; Now is who replayed it.
	Recorded []string `json:"recorded"`
	Now      string   `json:"now"`
	// Difference is the first decision that differs; nil when all are the same.
	Difference *Difference `json:"difference,omitempty"`

	// Differing is how many looks differ, when all are replayed. Each is compared after all
	// that was recorded before it, as if another process had decided what this version does not.
	Differing int `json:"differing,omitempty"`
	// Further are the differences of the next of them, [MostFurther] at most.
	Further []*Difference `json:"further,omitempty"`
	// Agrees is since when decisions are the same again; nil: the last look differs.
	Agrees *Since `json:"agrees,omitempty"`
}

// Since is a look from which on decisions are the same, to the end of the log.
type Since struct {
	Look   uint64    `json:"look"` // its number since its controller began
	At     time.Time `json:"at"`
	Looks  int       `json:"looks"`  // from it on
	Writes int       `json:"writes"` // in them
}

// Same reports whether every decision is the same.
func (r *Result) Same() bool { return r.Difference == nil }

// errDone ends the reading of a log.
var errDone = errors.New("the first difference is found")

// Replay reads a log and lets a controller decide again. The error is a *[Wrong] when the
// log makes no sense, and anything else when it cannot be read.
func Replay(log io.Reader, o Options) (*Result, error) {
	if o.Begin == nil {
		o.Begin = func(c controller.Config, s store.Store, n store.EventRecorder) store.Participant {
			return controller.New(c, s, n)
		}
	}
	p := &player{options: o, result: Result{Now: o.Build}}
	r := reader{begun: p.begin, looked: p.play}
	err := r.read(log)
	if p.result.Skipped = r.skipped; err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return &p.result, nil
}

// player replays a log.
type player struct {
	options Options
	result  Result
	stage   *replayStore
}

// begin lets a controller begin.
func (p *player) begin(t *term) error {
	config, err := p.options.Configure(t.origin.Config)
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	p.stage = &replayStore{known: Records{}}
	p.stage.brain = p.options.Begin(config, p.stage, p.stage)
	p.result.Terms++
	if n := len(p.result.Recorded); n == 0 || p.result.Recorded[n-1] != t.origin.Build {
		p.result.Recorded = append(p.result.Recorded, t.origin.Build)
	}
	return nil
}

// play lets the controller look once, and compares.
func (p *player) play(t *term, k *look) error {
	wake, err := p.stage.play(k)
	if err != nil {
		return err
	}
	p.result.Looks++
	p.result.Writes += k.met
	if d := p.stage.differs; d != nil {
		d.By, d.Term, d.Build = t.begin.By, t.begin.Term, t.origin.Build
		return p.differs(d)
	}
	p.agrees(k)
	if k.outcome == nil {
		return nil
	}
	if !wake.Equal(k.outcome.Wake) {
		p.result.Wakes++
	}
	if !slices.Equal(p.stage.said, k.said) {
		p.result.Words++
	}
	return nil
}

// differs notes a difference, and lets the replay go on if that was asked for.
func (p *player) differs(d *Difference) error {
	r := &p.result
	if r.Difference == nil {
		r.Difference = d
	}
	if !p.options.All {
		return errDone
	}
	r.Differing++
	r.Agrees = nil
	p.stage.loose = true // what the log has instead is read in the looks to come
	if r.Difference != d && len(r.Further) < MostFurther {
		r.Further = append(r.Further, d)
	}
	return nil
}

// agrees notes a look in which nothing differs.
func (p *player) agrees(k *look) {
	r := &p.result
	if r.Differing == 0 {
		return
	}
	if r.Agrees == nil {
		r.Agrees = &Since{Look: k.number, At: k.at}
	}
	r.Agrees.Looks++
	r.Agrees.Writes += k.met
}
