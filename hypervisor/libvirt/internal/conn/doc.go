// Package conn is a robust connection to one libvirtd.
//
//	Open ──► connected ──► lost ──► reopening (100 ms … 5 s) ──► connected …
//	             └──────────┴──────────────┴──► Close
//
// libvirt's own client waits for ever for a daemon that hangs, does not come back
// after one that died, and needs an event loop that its program runs. This package
// bounds every call, reopens what was lost, and delivers events in order. A caller
//
//  1. observes with [Conn.Look] and changes with [Conn.Act]: a look whose answer is
//     not known is Transient, an act whose outcome is not known is Unknown;
//  2. begins with [Conn.Begin] what lasts, such as a migration;
//  3. looks at everything again when Config.Connected is called: events of the time
//     in between are lost;
//  4. decides on [Classify], never on an error's text.
//
// libvirt.so is loaded when the first connection is opened. Only a build for Linux
// with the tag libvirt_dlopen can do that; in all others every call answers
// Unsupported and says what to do.
//
// It decides nothing about VMs and keeps nothing.
//
// # Loop
//
// This part runs libvirt's event loop while it is in use. Without it libvirt
// delivers no event and sends no keep-alive message.
//
// # Uri
//
// This part reads libvirt's names of connections, and refuses before libvirt is asked
// what cannot name a libvirtd that runs QEMU. It asks no daemon.
package conn
