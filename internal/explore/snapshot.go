package explore

// keeper keeps and brings back the states of one world, and tells them apart.
type keeper struct {
	w      *World
	images *Snapshots
	maker  *Hasher
	now    [Parts]*shared // what each part is known to hold; nil is something else
	sums   [Parts]sum
	fresh  uint   // parts whose sum is out of date
	held   []Held // scratch
	room   []held // for lists of records
	idle   []*Image
	done   []*snapshot
}

// shared is an image that several snapshots may have.
type shared struct {
	*Image
	users int
}

// snapshot is a state that can be brought back.
type snapshot struct {
	State
	images [Parts]*shared
	sums   [Parts]sum
}

func newKeeper(w *World) *keeper {
	w.Touched = 0
	return &keeper{w: w, images: NewSnapshots(fixed...), maker: NewHasher(rules),
		fresh: ^uint(0)}
}

// notice takes in what has changed. A part in which only the time has gone on holds something
// else, but comes to the same.
func (k *keeper) notice() {
	touched := k.w.Touched
	for part := range Parts {
		if touched>>part&1 == 1 {
			k.now[part] = nil
		}
	}
	if touched>>theClock&1 == 1 {
		k.now[theFabric] = nil
	}
	k.fresh |= touched &^ (1 << theClock)
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
	for part := range Parts {
		if k.now[part] == nil {
			if root := k.w.Part(part); root != nil {
				k.now[part] = &shared{Image: k.images.Take(root, k.spare())}
			}
		}
		if s.images[part] = k.now[part]; s.images[part] != nil {
			s.images[part].users++
		}
	}
	return s
}

func (k *keeper) spare() *Image {
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
