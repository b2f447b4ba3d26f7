package client

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

func table(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 8, 2, ' ', 0) }

// Table prints a status as tables.
func (s *Status) Table(out io.Writer) error {
	t := table(out)
	leader := "no leader"
	if s.Leader != "" {
		leader = fmt.Sprintf("%s leads, term %d", s.Leader, s.Term)
	}
	fmt.Fprintf(t, "%s; %s, %s, %s\n\n", leader, humanize.Count(len(s.Hosts), "host"),
		humanize.Count(len(s.VMs), "VM"), humanize.Count(len(s.Moves), "migration"))
	if len(s.Alarms) > 0 {
		alarms(t, s.Alarms)
		fmt.Fprintln(t)
	}
	for _, r := range s.Stopped {
		fmt.Fprintf(t, "maintenance %s has stopped: %s; godwit maintenance resume %s lets it go on\n\n",
			Plain(r.Name), Plain(r.Why), Plain(r.Name))
	}
	hosts(t, s.Hosts, s.At)
	if len(s.VMs) > 0 {
		fmt.Fprintln(t)
		vms(t, s.VMs)
	}
	if len(s.Moves) > 0 {
		fmt.Fprintln(t)
		moves(t, s.Moves, s.At)
	}
	return t.Flush()
}

// AlarmTable prints alarms.
func AlarmTable(out io.Writer, list []Alarm) { alarms(out, list) }

func alarms(out io.Writer, list []Alarm) {
	for _, a := range list {
		fmt.Fprintf(out, "ALARM  %s: %s\n", Plain(a.What), Plain(a.Do))
	}
}

// Hosts prints a table of hosts.
func Hosts(out io.Writer, list []Host, now time.Time) error {
	t := table(out)
	hosts(t, list, now)
	return t.Flush()
}

func hosts(t io.Writer, list []Host, now time.Time) {
	fmt.Fprintln(t, "HOST\tSTATE\tVMS\tMEMORY\tCPUS\tEMPTY IN\tSOFTWARE\tWHY")
	for _, h := range list {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s of %s\t%d of %d\t%s\t%s%s\n", dash(h.Name), h.State, h.VMs,
			h.UsedBytes, h.MemoryBytes, h.UsedCPUs, h.CPUs, until(h.EmptyAt, now),
			Plain(h.Software), why(h.Why))
	}
}

// VMs prints a table of VMs.
func VMs(out io.Writer, list []VM) error {
	t := table(out)
	vms(t, list)
	return t.Flush()
}

func vms(t io.Writer, list []VM) {
	fmt.Fprintln(t, "VM\tHOST\tSTATE\tMEMORY\tCPUS\tBOOTS\tWHY")
	for _, v := range list {
		host := string(v.Host)
		if host == "" {
			host = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d%s\n", Plain(string(v.Name)), Plain(host), v.State,
			v.MemoryBytes, v.CPUs, v.Boots, why(v.Why))
	}
}

// Moves prints a table of migrations.
func Moves(out io.Writer, list []MoveReport, now time.Time) error {
	t := table(out)
	moves(t, list, now)
	return t.Flush()
}

func moves(t io.Writer, list []MoveReport, now time.Time) {
	fmt.Fprintln(t, "MIGRATION\tPHASE\tFROM\tTO\tSENT\tLEFT\tRATE\tEND IN\tWHY")
	for _, m := range list {
		left, rate := "-", "-"
		if m.Rate > 0 {
			left, rate = m.RemainBytes.String(), m.Rate.String()
		}
		end := until(m.PredictedEnd, now)
		if m.Ended != nil {
			end = "ended"
		}
		text := m.Why
		if said := m.broke(); said != "" {
			text += " (" + said + ")"
		}
		if said := m.plain(); said != "" {
			text = strings.TrimSuffix(said+"; "+text, "; ")
		}
		if m.Canceled && m.Ended == nil {
			text = "cancelled; " + text
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", Plain(string(m.Name)), m.Phase,
			dash(m.Source), dash(m.Target), m.sent(), left, rate, end,
			why(strings.TrimSuffix(text, "; ")))
	}
}

// broke returns why the transfer of a migration that has failed broke, in the hypervisor's words.
func (m *MoveReport) broke() string {
	i := slices.IndexFunc(m.Reasons, func(r hypervisor.Reason) bool { return r.Check == sourceCheck })
	if i < 0 || m.Ended == nil {
		return ""
	}
	return m.Reasons[i].Have
}

// sent formats the amount that a migration has sent.
func (m *MoveReport) sent() string {
	switch {
	case m.Unknown && m.SentBytes > 0:
		return ">" + m.SentBytes.String()
	case m.Unknown:
		return "unknown"
	}
	return m.SentBytes.String()
}

func dash(h hypervisor.HostName) string {
	if h == "" {
		return "-"
	}
	return Plain(string(h))
}

// until formats the time until a moment.
func until(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	d := max(0, at.Sub(now))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("~%ds", int(d.Seconds()))
	case d < 48*time.Hour:
		return "~" + strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("~%dd", int(d.Hours()/24))
}

func why(text string) string {
	if text == "" {
		return ""
	}
	return "\t" + Plain(text)
}

// Plain returns text without control characters.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
