// Package loop runs libvirt's event loop while somebody uses it. Without it libvirt
// delivers no event and sends no keep-alive message.
package loop
