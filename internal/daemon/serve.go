package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A Server listens. Make it with [Listen].
type Server struct {
	listener net.Listener
	server   *http.Server
	done     chan error
}

// Listen serves at an address: ":9100" and "9100" are the loopback's port 9100, to be
// reached from elsewhere, say where: "0.0.0.0:9100". Metrics may be nil.
func Listen(address string, health *Health, metrics http.Handler) (*Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, health.Lives(r.Context()))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, health.IsReady(r.Context()))
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	l, err := listen(address, "metrics and health")
	if err != nil {
		return nil, err
	}
	return serve(l, mux), nil
}

// listen opens an address, for what is served there.
func listen(address, what string) (net.Listener, error) {
	where, err := loopback(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", where)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w: choose another address", what, err)
	}
	return l, nil
}

// serve answers requests until the server is closed.
func serve(l net.Listener, handler http.Handler) *Server {
	s := &Server{listener: l, done: make(chan error, 1), server: &http.Server{Handler: handler,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}}
	go func() { s.done <- s.server.Serve(l) }()
	return s
}

// loopback completes an address without a host.
func loopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		if _, short := net.LookupPort("tcp", address); short != nil || address == "" {
			return "", fmt.Errorf("%q is no address: write 127.0.0.1:9100, or 9100", address)
		}
		host, port = "", address
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Address is where the server listens: "127.0.0.1:9100".
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops listening, and returns when no request is being answered any more.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	if ended := <-s.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func answer(w http.ResponseWriter, s State) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !s.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // the requester may be gone
}
