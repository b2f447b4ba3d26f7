package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// A measurement goes over one TCP connection, as a migration without multifd does: a greeting, then bytes
// for a while, then the end of that direction; the other side answers with how many it has got and what
// its clock says.
const (
	largestPacket = 1<<16 - 1 // of IP; Linux's loopback has one more
	linkGreeting  = "godwit link 1\n"
	linkLongest   = 30 * time.Second // that one measurement may take of the side that answers
	linkPatience  = 5 * time.Second  // for a connection, a greeting, and an answer
)

// linkAnswer is what the other side has got of a measurement.
type linkAnswer struct {
	Bytes int64     `json:"bytes"`
	Now   time.Time `json:"now"`
}

// ServeLink answers measurements of other hosts, one at a time, until ctx is done. It closes l.
func ServeLink(ctx context.Context, l net.Listener, now func() time.Time) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return errors.Join(err, l.Close())
		}
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		answerLink(c, now)
		end()
		_ = c.Close()
	}
}

// answerLink answers one measurement. What does not greet is not answered.
func answerLink(c net.Conn, now func() time.Time) {
	_ = c.SetDeadline(time.Now().Add(linkPatience))
	greeting := make([]byte, len(linkGreeting))
	if _, err := io.ReadFull(c, greeting); err != nil || string(greeting) != linkGreeting {
		return
	}
	_ = c.SetDeadline(time.Now().Add(linkLongest))
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{c}, make([]byte, 256<<10))
	if err == nil {
		_ = json.NewEncoder(c).Encode(linkAnswer{Bytes: n, Now: now()})
	}
}

// link measures the way to a host that runs ServeLink: what one connection carries, the largest packet
// that passes, and the difference of the clocks.
func (c *HostCheck) link(ctx context.Context, address string) (all []HostResult) {
	check := "link to " + address
	fail := func(err error, do string) []HostResult { return []HostResult{{check, Failed, err.Error(), do}} }
	dial := net.Dialer{Timeout: linkPatience}
	if c.Address != "" {
		dial.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.Address)}
	}
	conn, err := dial.DialContext(ctx, "tcp", address)
	if err != nil {
		return fail(err, "run godwit doctor --answer --address IP there, and open the port in its firewall")
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	got, took, err := c.measure(conn)
	if err != nil {
		return fail(fmt.Errorf("it is reached, and bytes do not pass: %w", err),
			"is it godwit doctor --answer? A smaller MTU on the way does this, too, where a firewall drops ICMP: "+
				"ping -M do -s 1472 tells")
	}
	local, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	here, err := interfaceOf(local)
	if err != nil {
		return fail(err, "look with ip link")
	}
	return []HostResult{carries(check, got.Bytes, took, here), c.passes(address, conn, here), c.apart(address, got.Now, took)}
}

// measure sends bytes for c.MeasureFor, and returns the answer, and the time from the first byte to it.
func (c *HostCheck) measure(conn net.Conn) (got linkAnswer, took time.Duration, err error) {
	began := time.Now()
	_ = conn.SetDeadline(began.Add(c.MeasureFor + linkPatience))
	_, err = io.WriteString(conn, linkGreeting)
	for block, more := make([]byte, 256<<10), true; err == nil && more; more = time.Since(began) < c.MeasureFor {
		_, err = conn.Write(block)
	}
	if w, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
		err = w.CloseWrite()
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(conn, 1<<10)).Decode(&got)
	}
	if took = time.Since(began); err == nil && got.Bytes <= 0 {
		err = fmt.Errorf("it has got %d bytes", got.Bytes)
	}
	return got, took, err
}

// carries says what one connection carried, held against what the interface says of itself.
func carries(check string, bytes int64, took time.Duration, here net.Interface) HostResult {
	rate := hypervisor.Bandwidth(float64(bytes) / took.Seconds())
	found := "one connection carries " + bits(rate)
	says := interfaceSpeed(here.Name)
	if says == 0 {
		return HostResult{check, OK, found, ""}
	}
	found += fmt.Sprintf(", and %s is one of %s", here.Name, bits(says))
	if rate < says/2 {
		return HostResult{check, Warning, found, "if no other traffic has the rest: look for a slower part on the way; " +
			"more than one connection carries more where a processor is the limit: multifd"}
	}
	return HostResult{check, OK, found, ""}
}

// bits writes a bandwidth as links are named: in bits.
func bits(b hypervisor.Bandwidth) string {
	if b < hypervisor.Gbit {
		return fmt.Sprintf("%.3g Mbit/s", 1000*float64(b)/float64(hypervisor.Gbit))
	}
	return fmt.Sprintf("%.3g Gbit/s", float64(b)/float64(hypervisor.Gbit))
}

// passes compares the largest packet that passes to a host with what the interface here sends.
func (c *HostCheck) passes(address string, conn net.Conn, here net.Interface) HostResult {
	check := "MTU to " + address
	path, err := pathMTU(conn)
	switch {
	case err != nil:
		return HostResult{check, Warning, err.Error(), "ping -M do -s 1472 tells whether 1500 bytes pass"}
	case here.MTU > 0 && path < min(here.MTU, largestPacket):
		return HostResult{check, Warning, fmt.Sprintf("%d bytes pass, and %s sends %d", path, here.Name, here.MTU),
			"set the same MTU at both hosts and on the way"}
	}
	return HostResult{check, OK, fmt.Sprintf("%d bytes pass", path), ""}
}

// apart compares the clock of the other side with the one here: it was read between the first byte and
// the answer.
func (c *HostCheck) apart(address string, theirs time.Time, took time.Duration) HostResult {
	check := "clock of " + address
	ours := c.Now()
	apart := max(theirs.Sub(ours), ours.Add(-took).Sub(theirs))
	if apart > farOff {
		return HostResult{check, Failed, "it differs by " + humanize.Span(apart.Seconds()), "run chrony on both"}
	}
	return HostResult{check, OK, "it agrees", ""}
}

// interfaceOf returns the interface that has an IP, an empty one if none has it.
func interfaceOf(ip string) (net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, err
	}
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if has, _, err := net.ParseCIDR(a.String()); err == nil && has.String() == ip {
				return i, nil
			}
		}
	}
	return net.Interface{}, nil
}

// interfaceSpeed returns what the kernel says of an interface; 0 is not known, as of most virtual ones.
// Source: Documentation/ABI/testing/sysfs-class-net (speed, in Mbit/s; -1 is not known).
func interfaceSpeed(name string) hypervisor.Bandwidth {
	if name == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed"))
	if n, errN := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && errN == nil && n > 0 {
		return hypervisor.Bandwidth(n) * hypervisor.Gbit / 1000
	}
	return 0
}
