package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/godwit-vm/godwit/store"
)

// refusals are the answers by which etcd says that a write was not even proposed. Not
// among them: all that may come after it was proposed, such as a lost leader.
var refusals = []error{rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests, rpctypes.ErrEmptyKey,
	rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey, rpctypes.ErrPermissionDenied,
	rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision,
	rpctypes.ErrAuthFailed, rpctypes.ErrNotCapable}

// is reports whether err is one of etcd's own errors. They are values, and compared as such.
func is(err error, known ...error) bool {
	err = rpctypes.Error(err)
	return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
}

// unread is the error of a read that failed.
func unread(op string, key store.Key, err error) error {
	if e, ours := errors.AsType[*store.StoreError](err); ours {
		return &store.StoreError{Op: op, Key: key, Kind: e.Kind, Err: e.Err}
	}
	return &store.StoreError{Op: op, Key: key, Kind: store.Unavailable, Err: err}
}

// unreadable is the error of a record that cannot be read.
func unreadable(op string, key store.Key, err error) error {
	if e, ours := errors.AsType[*store.StoreError](err); ours {
		err = e.Err
	}
	err = fmt.Errorf("%s %q: %w", key.Kind, key.Name, err)
	return &store.StoreError{Op: op, Key: key, Kind: store.Unreadable, Err: err}
}

// kindOf says what is known about a write that failed; left says whether its request has
// left this process. A store that is full is looked into by the caller: etcd may have
// written all the same (server/v3 v3.7.3 etcdserver/apply/quota.go).
func kindOf(err error, left bool) store.StoreKind {
	switch {
	case is(err, rpctypes.ErrPermissionDenied):
		return store.Forbidden
	case !left, is(err, refusals...):
		return store.Unavailable
	case tooLarge(err), is(err, rpctypes.ErrNoSpace):
		return store.Full
	}
	return store.Unanswered
}

// tooLarge reports whether etcd, or gRPC on either side of the wire, takes no request of
// that size: it was not looked at.
func tooLarge(err error) bool {
	_, etcds := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err))
	return is(err, rpctypes.ErrRequestTooLarge) ||
		!etcds && status.Code(err) == codes.ResourceExhausted
}

var errClosed = errors.New("this client was closed")

// advised adds to an error what its reader can do about it.
func advised(err error) error {
	hint := ""
	switch {
	case is(err, rpctypes.ErrNoSpace):
		hint = "compact and defragment etcd (etcdctl compact --physical, etcdctl defrag), " +
			"then etcdctl alarm disarm, or raise --quota-backend-bytes"
	case tooLarge(err):
		hint = "the record is larger than etcd's --max-request-bytes"
	case is(err, rpctypes.ErrNoLeader):
		hint = "most of etcd's members are down, or this one is cut off from them"
	case is(err, rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed):
		hint = "etcd does not let this client in: check its certificate and its role"
	case is(err, rpctypes.ErrCorrupt):
		hint = "etcd says that its data is corrupt: see etcdctl alarm list"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// passing reports whether a read that failed may succeed if it is repeated at once.
func passing(err error) bool {
	if e, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err)); ok {
		return e.Code() == codes.Unavailable || e.Code() == codes.DeadlineExceeded
	}
	c := status.Code(err)
	return c == codes.Unavailable || c == codes.DeadlineExceeded ||
		errors.Is(err, context.DeadlineExceeded)
}

// A departure notes whether a request has left this process: one that waited for a
// connection in vain has certainly changed nothing.
type departure struct{ left atomic.Bool }

type departureKey struct{}

// noted returns a context under which d is told.
func (d *departure) noted(ctx context.Context) context.Context {
	return context.WithValue(ctx, departureKey{}, d)
}

// departures tells departures what gRPC does.
type departures struct{}

// TagRPC implements [stats.Handler].
func (departures) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler].
func (departures) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, is := s.(*stats.OutHeader); !is {
		return
	}
	if d, noted := ctx.Value(departureKey{}).(*departure); noted {
		d.left.Store(true)
	}
}

// TagConn implements [stats.Handler].
func (departures) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (departures) HandleConn(context.Context, stats.ConnStats) {}
