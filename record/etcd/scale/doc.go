// Package scale holds nothing but a test: what a migration costs in a real etcd, with up to
// 1,000 agents and a controller, and how that grows with the fleet.
package scale
