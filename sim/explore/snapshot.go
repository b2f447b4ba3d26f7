package explore

import (
	"github.com/godwit-vm/godwit/sim/explore/internal/checkpoint"
	"github.com/godwit-vm/godwit/sim/explore/internal/fingerprint"
	"github.com/godwit-vm/godwit/sim/explore/internal/stage"
)

// keeper keeps and brings back the states of one world, and tells them apart.
type keeper struct {
	w      *stage.World
	images *checkpoint.Keeper
	maker  *fingerprint.Maker
	now    [stage.Parts]*shared // what each part is known to hold; nil is something else
	sums   [stage.Parts]sum
	fresh  uint               // parts whose sum is out of date
	held   []fingerprint.Held // scratch
	room   []held             // for lists of records
	idle   []*checkpoint.Image
	done   []*snapshot
}

// shared is an image that several snapshots may have.
type shared struct {
	*checkpoint.Image
	users int
}

// snapshot is a state that can be brought back.
type snapshot struct {
	stage.State
	images [stage.Parts]*shared
	sums   [stage.Parts]sum
}

func newKeeper(w *stage.World) *keeper {
	w.Touched = 0
	return &keeper{w: w, images: checkpoint.New(fixed...), maker: fingerprint.New(rules),
		fresh: ^uint(0)}
}

// notice takes in what has changed. A part in which only the time has gone on holds something
// else, but comes to the same.
func (k *keeper) notice() {
	touched := k.w.Touched
	for part := range stage.Parts {
		if touched>>part&1 == 1 {
			k.now[part] = nil
		}
	}
	if touched>>stage.TheClock&1 == 1 {
		k.now[stage.TheFabric] = nil
	}
	k.fresh |= touched &^ (1 << stage.TheClock)
	k.w.Touched = 0
}

// keep returns the present state. Its number was made.
func (k *keeper) keep() *snapshot {
	k.notice()
	s := &snapshot{}
	if n := len(k.done); n > 0 {
		s, k.done = k.done[n-1], k.done[:n-1]
	}
	s.State, s.sums = k.w.State, k.sums
	for part := range stage.Parts {
		if k.now[part] == nil {
			if root := k.w.Part(part); root != nil {
				k.now[part] = &shared{Image: k.images.Keep(root, k.spare())}
			}
		}
		if s.images[part] = k.now[part]; s.images[part] != nil {
			s.images[part].users++
		}
	}
	return s
}

func (k *keeper) spare() *checkpoint.Image {
	n := len(k.idle)
	if n == 0 {
		return nil
	}
	i := k.idle[n-1]
	k.idle = k.idle[:n-1]
	return i
}

// restore brings a state back.
func (k *keeper) restore(s *snapshot) {
	k.notice()
	for part, i := range s.images {
		if i != nil && k.now[part] != i {
			i.Restore()
		}
	}
	k.now, k.w.State, k.w.Broken = s.images, s.State, nil
	k.sums, k.fresh = s.sums, 0
}

// drop lets a snapshot go.
func (k *keeper) drop(s *snapshot) {
	for part, i := range s.images {
		if i == nil {
			continue
		}
		if i.users--; i.users == 0 {
			k.idle = append(k.idle, i.Image)
			if k.now[part] == i {
				k.now[part] = nil
			}
		}
	}
	k.done = append(k.done, s)
}
