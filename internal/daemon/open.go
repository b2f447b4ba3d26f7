package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/store"
)

// TLS are files for connections to etcd. The zero value is no TLS.
type TLS struct{ CA, Cert, Key string }

// Empty reports whether none is given.
func (t TLS) Empty() bool { return t == TLS{} }

// A Store is a store that its opener has to close.
type Store interface {
	store.Store
	store.Waiter
	io.Closer
}

// AbsentError is a store that is not there.
type AbsentError struct {
	URL URL
	Err error
}

// Error says what to do about it.
func (e *AbsentError) Error() string {
	what := "start a controller on this machine: godwit controller --store bolt:PATH " +
		"--name NAME, and give the same URL, or unix: and the path of its socket"
	if e.URL.Kind == Etcd {
		what = "start etcd, or give the addresses at which it listens"
	}
	return fmt.Sprintf("the store %s does not answer: %v: %s", e.URL, e.Err, what)
}

// Unwrap returns why it is not there.
func (e *AbsentError) Unwrap() error { return e.Err }

// Brief says it in few words, for a daemon that waits.
func (e *AbsentError) Brief() string {
	switch {
	case e.URL.Kind == Etcd:
		return "etcd does not answer"
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, syscall.ECONNREFUSED):
		return "no controller on this machine serves it yet"
	}
	return "the controller that serves it does not answer"
}

// OpenStore opens a store as agents and operators do: that of bolt through the socket of its
// controller. The error is an *[AbsentError] when no server answers.
func OpenStore(ctx context.Context, u URL, tls TLS) (Store, error) {
	if u.Kind != Etcd {
		if !tls.Empty() {
			return nil, fmt.Errorf("%s: certificates are for etcd only", u)
		}
		return dial(ctx, u)
	}
	s, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: u.Endpoints, Prefix: u.Prefix, CA: tls.CA,
		Cert: tls.Cert, Key: tls.Key})
	if err != nil {
		return nil, absent(u, err)
	}
	return s, nil
}

// absent says of an error that it means that no server answers, if it does.
func absent(u URL, err error) error {
	op, is := errors.AsType[*net.OpError](err)
	silent := is && op.Op == "dial" || errors.Is(err, context.DeadlineExceeded)
	if silent || u.Kind != Etcd && errors.Is(err, store.Unavailable) {
		return &AbsentError{u, err}
	}
	return fmt.Errorf("the store %s: %w", u, err)
}

// again is how long Await waits between two attempts.
const again = time.Second

// Await is Open for those who can wait: as long as no server answers, it asks again, and tells
// once.
func Await(ctx context.Context, u URL, tls TLS, tell func(*AbsentError)) (Store, error) {
	for told := false; ; {
		s, err := OpenStore(ctx, u, tls)
		absent, is := errors.AsType[*AbsentError](err)
		if !is {
			return s, err
		}
		if !told {
			told = true
			tell(absent)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}
