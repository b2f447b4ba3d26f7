package daemon

import (
	"fmt"
	"net"
	"path"
	"strings"
)

// A Kind is a way to keep records.
type Kind string

// The kinds of stores.
const (
	Bolt Kind = "bolt"
	Unix Kind = "unix"
	Etcd Kind = "etcd"
	// Served is a store that controllers serve over a network.
	Served Kind = "tls"
)

// A URL names a store.
type URL struct {
	Kind      Kind
	Path      string   // of the file, or of the socket
	Endpoints []string // of etcd, or of controllers: "host:port"
	Prefix    string   // in etcd: "/godwit"
}

// URLError is a text that names no store.
type URLError struct{ Text, Why string }

// Error says what is wrong, and what is right.
func (e *URLError) Error() string {
	return fmt.Sprintf("%q names no store: %s: write bolt:/var/lib/godwit/cluster.db, "+
		"unix:/run/godwit.sock, tls://10.0.0.1:7443,10.0.0.2:7443 or "+
		"etcd://10.0.0.1:2379,10.0.0.2:2379/godwit", e.Text, e.Why)
}

// maxSocket is the length of a path in sockaddr_un, less its end.
const maxSocket = 107

// ParseURL reads a URL. The error is a *[URLError].
func ParseURL(text string) (URL, error) {
	wrong := func(format string, args ...any) (URL, error) {
		return URL{}, &URLError{text, fmt.Sprintf(format, args...)}
	}
	kind, rest, found := strings.Cut(text, ":")
	if !found {
		return wrong("it has no kind")
	}
	u := URL{Kind: Kind(kind)}
	switch u.Kind {
	case Bolt, Unix:
		if u.Path = rest; rest == "" || strings.HasSuffix(rest, "/") {
			return wrong("it has no path")
		}
		if n := len(u.Socket()); n > maxSocket {
			return wrong("the path of its socket has %d bytes, and %d are the most", n, maxSocket)
		}
		return u, nil
	case Etcd, Served:
		return parseHosts(u, rest, wrong)
	}
	return wrong("there is no kind %q", kind)
}

func parseHosts(u URL, rest string, wrong func(string, ...any) (URL, error)) (URL, error) {
	rest, found := strings.CutPrefix(rest, "//")
	if !found {
		return wrong("%s: is followed by //", u.Kind)
	}
	hosts, prefix, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
			return wrong("%q is no host and port", host)
		}
		u.Endpoints = append(u.Endpoints, host)
	}
	if u.Kind == Served {
		if prefix != "" {
			return wrong("controllers serve one store, and %q names none of many", "/"+prefix)
		}
		return u, nil
	}
	if u.Prefix = path.Clean("/" + prefix); u.Prefix == "/" {
		u.Prefix = "/godwit"
	}
	return u, nil
}

// Socket is where a controller on this machine serves the store; "" for others.
func (u URL) Socket() string {
	switch u.Kind {
	case Bolt:
		return u.Path + ".sock"
	case Unix:
		return u.Path
	}
	return ""
}

// String returns the URL as Parse reads it.
func (u URL) String() string {
	if u.Kind == Etcd {
		return "etcd://" + strings.Join(u.Endpoints, ",") + u.Prefix
	}
	if u.Kind == Served {
		return "tls://" + strings.Join(u.Endpoints, ",")
	}
	return string(u.Kind) + ":" + u.Path
}
