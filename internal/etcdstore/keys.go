package etcdstore

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// keys lays out the keys below a prefix, which does not end in a slash.
type keys string

// signs reports whether a kind is in the feed of heartbeats.
func signs(k store.Kind) bool { return k == store.LeaseKind || k == store.LeaderKind }

// record is where a record is.
func (p keys) record(k store.Key) string { return p.records(signs(k.Kind)) + path(k) }

// records is what the records of one of the two big feeds begin with.
func (p keys) records(signs bool) string {
	if signs {
		return string(p) + "/s/"
	}
	return string(p) + "/r/"
}

// marker is what says that a record is in the feed of a host.
func (p keys) marker(h hypervisor.HostName, k store.Key) string {
	return p.feed(store.Feed{Host: h}) + path(k)
}

// history is where the store keeps what it knows of its past; it is in no feed.
func (p keys) history() string { return string(p) + "/history" }

// feed is what the keys of a feed begin with: records, or the markers of a host.
func (p keys) feed(f store.Feed) string {
	if f.Host == "" {
		return p.records(f.Leases)
	}
	return string(p) + "/f/" + escape(string(f.Host)) + "/"
}

// head is the key that is written with every change of a feed.
func (p keys) head(f store.Feed) string {
	switch {
	case f.Leases:
		return string(p) + "/h/signs"
	case f.Host == "":
		return string(p) + "/h/all"
	}
	return string(p) + "/h/host/" + escape(string(f.Host))
}

func path(k store.Key) string { return k.Kind.String() + "/" + escape(k.Name) }

func escape(name string) string { return url.PathEscape(name) }

// parse finds out which record a key of a feed is about.
func (p keys) parse(f store.Feed, key string) (store.Key, error) {
	rest, ours := strings.CutPrefix(key, p.feed(f))
	word, escaped, whole := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	if ours && whole && err == nil {
		for _, k := range store.Kinds() {
			if k.String() == word {
				return store.Key{Kind: k, Name: name}, nil
			}
		}
	}
	return store.Key{Name: key}, fmt.Errorf("etcd's key %q is no record that this godwit "+
		"knows: upgrade godwit here, or remove the key if it is not godwit's", key)
}
