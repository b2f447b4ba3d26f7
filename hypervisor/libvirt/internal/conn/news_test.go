//go:build linux && libvirt_dlopen

package conn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told starts to deliver news, and answers all that was told once the news have ended.
func told(n *news) []string {
	var got []string
	c := Config{Events: func(e Event) { got = append(got, e.Domain) },
		Lost:      func(err error) { got = append(got, "lost: "+err.Error()) },
		Connected: func() { got = append(got, "connected") }}
	n.end()
	n.deliver(&c)
	return got
}

func TestNewsComeInOrder(t *testing.T) {
	n := newNews()
	n.add(notice{event: &Event{Domain: "a"}})
	n.add(notice{lost: errors.New("hung")})
	n.add(notice{connected: true})
	n.add(notice{event: &Event{Domain: "b"}})
	want := []string{"a", "lost: hung", "connected", "b"}
	if diff := cmp.Diff(want, told(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTooManyNews: who does not listen misses events, is told so, and never takes
// more than so much memory.
func TestTooManyNews(t *testing.T) {
	for _, row := range []struct {
		name   string
		before []notice
		want   []string
	}{
		{"events only", nil, []string{"connected", "last"}},
		{"and a loss, which a connection will follow",
			[]notice{{connected: true}, {lost: errors.New("hung")}},
			[]string{"lost: hung", "last"}},
		{"and a connection", []notice{{lost: errors.New("hung")}, {connected: true}},
			[]string{"connected", "last"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNews()
			for _, what := range row.before {
				n.add(what)
			}
			for i := range mostNews - len(row.before) {
				n.add(notice{event: &Event{Domain: fmt.Sprint(i)}})
			}
			if len(n.queue) != mostNews {
				t.Fatalf("%d notices wait", len(n.queue))
			}
			n.add(notice{event: &Event{Domain: "last"}})
			if diff := cmp.Diff(row.want, told(n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
