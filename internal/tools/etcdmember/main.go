// Etcdmember is one member of a cluster of etcd, for the tests of package etcdtest.
//
//	etcdmember run DESCRIPTION     be a member until standard input ends
//	etcdmember rename FROM TO      copy a log, with another cluster id
//
// It is a program of a module of its own: programs that import godwit do not inherit etcd's server.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "run":
		err = run(args[1])
	case len(args) == 3 && args[0] == "rename":
		err = rename(args[1], args[2])
	default:
		err = fmt.Errorf("arguments %q: want run DESCRIPTION, or rename FROM TO", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// A description is what a member needs to know; etcdtest writes it.
type description struct {
	Name, Dir, Log, Client, Peer, Cluster string
	CA, Cert, Key                         string
	Quota                                 int64
	Fsync                                 bool
}

// run is a member until its standard input ends: it never outlives the test.
func run(text string) error {
	var d description
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	config, err := d.config()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	ready := e.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			fmt.Println("ready")
			ready = nil
		case err := <-e.Err():
			return err
		case err := <-ended:
			return err
		}
	}
}

func (d description) config() (*embed.Config, error) {
	client, err := url.Parse(d.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(d.Peer)
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Name, c.Dir = d.Name, d.Dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.InitialCluster, c.InitialClusterToken = d.Cluster, d.Cluster
	c.TickMs, c.ElectionMs = 50, 500
	c.LogLevel, c.LogOutputs = "warn", []string{d.Log}
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = !d.Fsync // a killed process loses nothing by it
	c.QuotaBackendBytes = d.Quota
	if d.Cert != "" {
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = d.Cert, d.Key
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = d.CA, true
	}
	return c, nil
}

// rename copies a log, with another cluster id.
func rename(from, to string) error {
	old, err := wal.Open(zap.NewNop(), from, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer old.Close()
	text, state, entries, err := old.ReadAll()
	if err != nil {
		return err
	}
	var about etcdserverpb.Metadata
	if err := proto.Unmarshal(text, &about); err != nil {
		return err
	}
	about.ClusterID = proto.Uint64(about.GetClusterID() + 1)
	if text, err = proto.Marshal(&about); err != nil {
		return err
	}
	log, err := wal.Create(zap.NewNop(), to, text)
	if err != nil {
		return err
	}
	return errors.Join(log.Save(state, entries), log.Close())
}
