package etcdtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
)

// variable holds the description of the member that a process is to be.
const variable = "GODWIT_ETCD_MEMBER"

// description is what a member's process needs to know.
type description struct {
	Name, Dir, Log, Client, Peer, Cluster string
	CA, Cert, Key                         string
	Quota                                 int64
	Fsync                                 bool
}

// Main runs the tests of a package, or a member of a cluster if this process is to be one.
// It is for TestMain, and does not return.
func Main(m *testing.M) {
	Member()
	os.Exit(m.Run())
}

// Member runs a member and ends the process if it is to be one; otherwise it returns at
// once. It is for a TestMain that does more than [Main], which then calls it first.
func Member() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var d description
	err := json.Unmarshal([]byte(text), &d)
	if err == nil {
		err = d.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is a member until its standard input ends: it never outlives the test.
func (d description) run() error {
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
