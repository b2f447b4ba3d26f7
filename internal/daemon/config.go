package daemon

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/godwit-vm/godwit/hypervisor"
)

// FenceConfig says how hosts are cut off. As YAML:
//
//	hosts:
//	  n1:
//	    - devices:                  # the first level
//	        - agent: fence_ipmilan
//	          options: {ip: 10.0.0.1, username: godwit, password: secret, lanplus: 1}
//	    - devices:                  # the second: both power supplies
//	        - {agent: fence_apc, options: {ip: 10.0.0.2, plug: 7, password: secret}}
//	        - {agent: fence_apc, options: {ip: 10.0.0.3, plug: 7, password: secret}}
type FenceConfig struct {
	// Hosts has the levels of each host. They are tried in turn until one succeeds.
	Hosts map[hypervisor.HostName][]Level `yaml:"hosts"`
}

// A Level is what has to be done together to cut a host off.
type Level struct {
	// Devices are all switched off; the host is off when all of them are.
	Devices []Device `yaml:"devices"`
}

// A Device is one thing that can be switched off.
type Device struct {
	// Agent is the program: a path, or a name that is looked for in PATH and sbin.
	Agent string `yaml:"agent"`
	// Options are handed to the agent, besides action and nodename.
	Options Options `yaml:"options"`
	// Delay is how long to wait before the device is switched off, so that of two
	// hosts that cut each other off one is faster. Default: none.
	Delay time.Duration `yaml:"delay"`
	// Timeout bounds everything that is asked of the device, Delay excepted, until it
	// is proved to be off. Default: 60s (Pacemaker stonith-timeout).
	Timeout time.Duration `yaml:"timeout"`
}

// Options are options of an agent. They have passwords in them, and print as names only.
type Options map[string]string

// String lists the names of the options.
func (o Options) String() string { return strings.Join(slices.Sorted(maps.Keys(o)), ",") }

// GoString lists the names of the options.
func (o Options) GoString() string { return o.String() }

const (
	defaultTimeout = time.Minute
	maxFile        = 1 << 20 // bytes of a configuration
	private        = 0o077   // what others may do with the file: nothing
)

// LoadFence reads a configuration from a file, which only its owner may read or write.
// An error names the file, the line where there is one, and no value.
func LoadFence(path string) (*FenceConfig, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("fencing: %w", err)
	}
	defer f.Close()
	stat, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("fencing: %w", err)
	case !stat.Mode().IsRegular():
		return nil, fmt.Errorf("fencing: %s is no regular file", path)
	case stat.Mode().Perm()&private != 0:
		return nil, fmt.Errorf("fencing: %s has passwords in it and is open to others (mode "+
			"%04o): chmod 600 it", path, stat.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("fencing: %w", err)
	}
	return ParseFence(path, text)
}

// ParseFence reads a configuration; name is for errors.
func ParseFence(name string, text []byte) (c *FenceConfig, err error) {
	defer func() {
		if broken := recover(); broken != nil { // the parser's mistake, not the caller's
			c, err = nil, fmt.Errorf("fencing: %s is no YAML that can be read", name)
		}
	}()
	if len(text) > maxFile {
		return nil, fmt.Errorf("fencing: %s is longer than %d bytes", name, maxFile)
	}
	if err := checkSpans(text); err != nil {
		return nil, fmt.Errorf("fencing: %s: %w", name, err)
	}
	c = &FenceConfig{}
	err = yaml.UnmarshalWithOptions(text, c, yaml.DisallowUnknownField())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fencing: %s: %w", name, explain(err))
	}
	if why := c.check(); why != nil {
		return nil, fmt.Errorf("fencing: %s: %w", name, why)
	}
	return c, nil
}

// check returns everything that is wrong with c, and fills in the defaults.
func (c *FenceConfig) check() error {
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(c.Hosts)) {
		if len(c.Hosts[host]) == 0 {
			errs = append(errs, fmt.Errorf("host %s has no level: name a device, or leave it out",
				host))
		}
		for i, level := range c.Hosts[host] {
			if len(level.Devices) == 0 {
				errs = append(errs, fmt.Errorf("level %d of host %s has no device", i+1, host))
			}
			for k := range level.Devices {
				if err := level.Devices[k].check(); err != nil {
					errs = append(errs, fmt.Errorf("device %d in level %d of host %s: %w", k+1,
						i+1, host, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (d *Device) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if d.Agent == "" || strings.ContainsAny(d.Agent, "\x00\n") {
		bad("it needs the name of an agent, such as fence_ipmilan")
	}
	if d.Delay < 0 || d.Timeout < 0 {
		bad("delay and timeout must not be negative")
	}
	if d.Timeout == 0 {
		d.Timeout = defaultTimeout
	}
	for name, value := range d.Options {
		switch {
		case name == "" || strings.ContainsAny(name, " \t\r\n\x00=") || name[0] == '#':
			bad("%q cannot be the name of an option", name)
		case name == "action" || name == "option" || name == "nodename":
			bad("the option %s is not to be set: godwit does", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			bad("the value of the option %s has more than one line", name)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
