package daemon

import (
	"context"
	"crypto/tls"
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

// TLS are files for connections to the store. The zero value is none.
type TLS struct {
	CA, Cert, Key string // of etcd
	// Dir has those to show to controllers that serve the store: see pki.Dir.
	Dir string
}

// etcd reports whether files for etcd are given.
func (t TLS) etcd() bool { return t.CA != "" || t.Cert != "" || t.Key != "" }

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
	switch {
	case e.forbidden():
		what = "this user may not use its socket: run the command as the controller's user, or start " +
			"the controller with a group of yours as --viewer-group or --operator-group"
	case e.URL.Kind == Etcd:
		what = "start etcd, or give the addresses at which it listens"
	case e.URL.Kind == Served:
		what = "start a controller with --store-listen, or give the addresses at which one listens"
	}
	return fmt.Sprintf("the store %s does not answer: %v: %s", e.URL, e.Err, what)
}

// Unwrap returns why it is not there.
func (e *AbsentError) Unwrap() error { return e.Err }

// forbidden reports whether the kernel lets this user not connect.
func (e *AbsentError) forbidden() bool { return errors.Is(e.Err, fs.ErrPermission) }

// Brief says it in few words, for a daemon that waits.
func (e *AbsentError) Brief() string {
	switch {
	case e.forbidden():
		return "this user may not use its socket"
	case e.URL.Kind == Etcd:
		return "etcd does not answer"
	case e.URL.Kind == Served:
		return "no controller answers"
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, syscall.ECONNREFUSED):
		return "no controller on this machine serves it yet"
	}
	return "the controller that serves it does not answer"
}

// OpenStore opens a store as agents and operators do: that of bolt through the socket of its
// controller, or any through the controllers that serve it. The error is an *[AbsentError] when no server answers.
func OpenStore(ctx context.Context, u URL, files TLS) (Store, error) {
	if u.Kind != Etcd {
		if files.etcd() {
			return nil, fmt.Errorf("%s: --etcd-ca, --etcd-cert and --etcd-key are for etcd only", u)
		}
		return dial(ctx, u, files)
	}
	s, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: u.Endpoints, Prefix: u.Prefix, CA: files.CA,
		Cert: files.Cert, Key: files.Key})
	if err != nil {
		return nil, absent(u, err)
	}
	return s, nil
}

// absent says of an error that it means that no server answers, if it does.
func absent(u URL, err error) error {
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	op, is := errors.AsType[*net.OpError](err)
	if is && op.Op == "remote error" || distrusted { // an alert of TLS: waiting does not help
		return fmt.Errorf("the store %s: %w: check the certificates on both sides with godwit doctor --tls-dir", u, err)
	}
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
func Await(ctx context.Context, u URL, files TLS, tell func(*AbsentError)) (Store, error) {
	for told := false; ; {
		s, err := OpenStore(ctx, u, files)
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
