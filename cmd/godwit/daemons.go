package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/inventory"
)

const stateVariable = "STATE_DIRECTORY" // The private directory that systemd gives a controller, where --dir is not given.

// daemonFlags are what the daemons have in common.
type daemonFlags struct {
	cli.StoreFlags
	listen, audit string
	auditSize     string
	auditKeep     int
	log, level    string
	heartbeat     time.Duration
}

func (f *daemonFlags) add(c *cobra.Command) {
	f.StoreFlags.Add(c)
	c.Annotations = map[string]string{isDaemon: "yes"}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "", "`ADDRESS` of health and metrics: 9100 is on the\n"+
		"loopback, 0.0.0.0:9100 on all interfaces; default: none")
	flags.StringVar(&f.audit, "audit", "", "`FILE` to write every decision to; reopened on SIGHUP")
	flags.StringVar(&f.auditSize, "audit-max-size", "64MiB", "`SIZE` at which that file is rotated "+
		"to FILE.1;\n0: never, another program rotates it")
	flags.IntVar(&f.auditKeep, "audit-keep", 8, "keep `N` rotated files: FILE.1 to FILE.N")
	flags.StringVar(&f.log, "log", daemon.Text, "`FORMAT` of the log: text or json")
	flags.StringVar(&f.level, "log-level", "info", "`LEVEL` of the log: debug, info, warn, error")
	flags.DurationVar(&f.heartbeat, "heartbeat-interval", 5*time.Second, "`TIME` between heartbeats")
	cli.FormerFlag(flags, "beat", "heartbeat-interval")
}

// surroundings returns where a daemon writes what; done closes it.
func (f *daemonFlags) surroundings(ctx context.Context, log io.Writer) (s daemon.Dependencies,
	done func() error, err error) {
	done = func() error { return nil }
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return s, done, fmt.Errorf("--log-level: unknown level %q: use debug, info, warn or error",
			f.level)
	}
	if s.Log, err = daemon.Logger(log, f.log, level); err != nil {
		return s, done, fmt.Errorf("--log: %w", err)
	}
	s.Build = cli.BuildName()
	if s.Listen, s.HeartbeatInterval = f.listen, f.heartbeat; s.HeartbeatInterval <= 0 {
		return s, done, fmt.Errorf("--heartbeat-interval: %v is not a time above zero: write 5s", s.HeartbeatInterval)
	}
	if s.Supervisor, err = daemon.NewSupervisor(); err != nil {
		return s, done, err
	}
	logger, supervisor := s.Log, s.Supervisor
	s.Ready = func(address string) {
		logger.Info("has begun", "listens", address)
		supervisor.Ready("runs")
	}
	go supervisor.Tend(ctx) // it ends with the context, or with the process
	if f.audit == "" {
		return s, done, nil
	}
	rotation, err := f.rotation()
	if err != nil {
		return s, done, err
	}
	if s.Audit, err = audit.OpenRotating(f.audit, rotation); err != nil {
		return s, done, err
	}
	exposed(&s)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range hangups {
			if err := s.Audit.Reopen(); err != nil {
				s.Log.Error("audit log is not reopened", "error", err)
				continue
			}
			exposed(&s)
		}
	}()
	return s, func() error {
		signal.Stop(hangups)
		close(hangups)
		<-ended
		return s.Audit.Close()
	}, nil
}

// exposed tells that the audit log was open to others.
func exposed(s *daemon.Dependencies) {
	if mode := s.Audit.Exposed(); mode != 0 {
		s.Log.Warn("audit log was open to others: its mode is 0600 now", "was", fmt.Sprintf("%04o", mode))
	}
}

// rotation returns when the audit log is rotated.
func (f *daemonFlags) rotation() (r audit.Rotation, err error) {
	if f.auditKeep < 1 {
		return r, fmt.Errorf("--audit-keep: %d is less than 1: write 8", f.auditKeep)
	}
	if f.auditSize == "0" {
		return r, nil
	}
	size, err := inventory.ParseBytes(f.auditSize)
	if err == nil && size < 64<<10 {
		err = fmt.Errorf("%q is less than 64KiB", f.auditSize)
	}
	if err != nil {
		return r, fmt.Errorf("--audit-max-size: %w: write 64MiB, or 0 for no rotation", err)
	}
	return audit.Rotation{MaxSize: int64(size), Keep: f.auditKeep}, nil
}

func controllerCommand() *cobra.Command {
	var f daemonFlags
	var d daemon.Controller
	var socket, fencing, conf, dir string
	var groups accessFlags
	c := &cobra.Command{Use: "controller --store URL --name NAME", Short: "Run the cluster controller",
		Long: controllerHelp, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := config.ReadSettings(conf)
		if err != nil {
			return err
		}
		u, err := f.Parse()
		if err != nil {
			return err
		}
		if d.Name == "" {
			return errors.New("--name is missing: it distinguishes this controller from others")
		}
		if err := named("--name", d.Name); err != nil {
			return err
		}
		if d.LeaseDuration < 0 {
			return fmt.Errorf("--lease-duration: %v is negative: write 30s", d.LeaseDuration)
		}
		if err := patient(s.Failover.Complete().Grace, f.heartbeat); err != nil {
			return err
		}
		var done func() error
		if d.Dependencies, done, err = f.surroundings(c.Context(), c.ErrOrStderr()); err != nil {
			return err
		}
		d.Config, d.Failover, d.Settings = s.Controller, s.Failover, s.Text
		d.Certificates = daemon.CertificatesOf(daemon.HostConfig{}, f.TLS)
		access, err := groups.access(u, &d)
		server, errServer := groups.server(u, f.TLS, access, d.Log)
		if err = errors.Join(err, errServer); err != nil {
			return errors.Join(err, done())
		}
		return errors.Join(withFence(c.Context(), &d, fencing, func(ctx context.Context) error {
			return decide(ctx, &d, u, &f, socket, dir, access, server)
		}), done())
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&d.Name, "name", "", "the controller's unique `NAME`")
	flags.StringVar(&d.Page, "page", "", "`ADDRESS` of the page for browsers, which only reads and "+
		"asks for no\npassword: 8080 is on the loopback; default: none")
	flags.StringVar(&socket, "socket", "", "`PATH` to serve bolt's file at; default: PATH.sock")
	groups.add(flags)
	c.PersistentFlags().Lookup("tls-dir").Usage = "`DIR` with ca-cert.pem, server-cert.pem and server-key.pem to " +
		"serve\nthe store with"
	flags.StringVar(&dir, "dir", os.Getenv(stateVariable), "private `DIR` for the newest revision "+
		"seen of etcd;\ndefault: $"+stateVariable+"; of bolt's file: PATH.seen")
	flags.StringVar(&fencing, "fencing", "", "`FILE` with the fencing devices")
	flags.StringVar(&conf, "config", "", "`FILE` with limits, policies, timeouts, quotas")
	flags.DurationVar(&d.LeaseDuration, "lease-duration", 0, "take over after this `TIME` without a leader "+
		"heartbeat;\ndefault: 6 heartbeat intervals")
	cli.FormerFlag(flags, "patience", "lease-duration")
	return c
}

// patient refuses a grace in which an agent that lives may send no heartbeat: one may be late, and one lost.
func patient(grace, heartbeat time.Duration) error {
	const heartbeats = 3
	if grace/heartbeats >= heartbeat {
		return nil
	}
	return fmt.Errorf("failover.grace is %v, less than %d heartbeat intervals of %v (--heartbeat-interval): hosts would be called lost "+
		"whose agents live; write %v or more", grace, heartbeats, heartbeat, heartbeats*heartbeat)
}

// named refuses a name that cannot be written in files, such as scenarios.
func named(flag, name string) error {
	if name == "" || client.IsName(name) {
		return nil
	}
	return fmt.Errorf("%s: %.100q is not a name: write 1 to %d of a-z A-Z 0-9 . _ -", flag, name,
		inventory.MaxName)
}

// withFence runs a controller that can fence hosts, if a file describes the devices.
func withFence(ctx context.Context, d *daemon.Controller, file string,
	run func(context.Context) error) error {
	if file == "" {
		d.Log.Warn("no host can be fenced: operators have to confirm that a host is down", "see", "--fencing")
		return run(ctx)
	}
	config, err := daemon.LoadFence(file)
	if err != nil {
		return err
	}
	f, err := daemon.NewFence(config)
	if err != nil {
		return err
	}
	d.Fencer = f
	if err := f.Check(ctx); err != nil {
		d.Log.Error("a fencing device does not work", "error", err)
	}
	return errors.Join(run(ctx), f.Close())
}

// decide runs a controller over its store.
func decide(ctx context.Context, d *daemon.Controller, u daemon.URL, f *daemonFlags,
	socket, dir string, access boltstore.Access, server daemon.StoreServer) error {
	if u.Kind != daemon.Bolt {
		store, err := daemon.Await(ctx, u, f.TLS, waits(&d.Dependencies))
		if err != nil {
			return ended(ctx, err)
		}
		seen := ""
		if dir != "" {
			seen = filepath.Join(dir, "controller-"+d.Name+".seen")
		} else {
			d.Log.Warn("the newest revision that this controller has seen is not kept when it ends", "see",
				"--dir")
		}
		gate, err := daemon.Gated(ctx, store, seen, "controller/"+d.Name)
		if err != nil {
			return errors.Join(ended(ctx, err), store.Close())
		}
		d.Store = gate
		return errors.Join(server.Serve(ctx, gate, d.Run), gate.Close(), store.Close())
	}
	before, _ := os.Stat(u.Path) // nil where there is none yet
	return daemon.Serve(ctx, u, socket, access, func(ctx context.Context, store daemon.Store) error {
		if before != nil && before.Mode().Perm()&0o077 != 0 {
			d.Log.Warn("the store's file was open to others: its mode is 0600 now", "file", u.Path, "was",
				fmt.Sprintf("%04o", before.Mode().Perm()))
		}
		d.Store, d.Alone = store, true
		return server.Serve(ctx, store, d.Run)
	})
}

// waits returns what a daemon says, once, while its store does not answer. A service that waits
// has started: what waits for it goes on.
func waits(s *daemon.Dependencies) func(*daemon.AbsentError) {
	return func(err *daemon.AbsentError) {
		s.Log.Warn("waits for the store", "store", err.URL.String(), "why", err.Brief())
		s.Log.Debug("the store does not answer", "error", err)
		s.Supervisor.Ready("waits for the store " + err.URL.String() + ": " + err.Brief())
	}
}

// ended returns nil for an error that only reports the end of the daemon.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
