package domxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// The limits of what is read.
const (
	// maxText is how long the XML of a domain may be, in bytes.
	// Source: libvirt remote_protocol.x (REMOTE_STRING_MAX).
	maxText = 4 << 20
	// maxDepth is how deep its elements may be nested.
	// Source: libxml2 parserInternals.h (xmlParserMaxDepth).
	maxDepth = 256
)

// Domain is the root of a domain's XML.
const Domain = "domain"

// A Document is an XML text as a tree. What is not changed in the tree is written
// as it was read, byte for byte.
type Document struct {
	// Root is the outermost element.
	Root   *etree.Element
	tokens []etree.Token // on the outermost level: the root, and comments around it
	read   map[etree.Token]origin
}

// An origin is what a token was read from.
type origin struct {
	open  string       // the text of a token, or the start tag of an element
	close string       // the end tag of an element; "" if the start tag is all
	attrs []etree.Attr // of an element
	data  string       // of text
}

// parse reads XML whose root is the given element. It fails with
// [hypervisor.Invalid] for all else, and for XML that is long, deep or has a
// document type, which no domain has.
func parse(text, root string) (*Document, error) {
	pieces, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("XML of a libvirt %s cannot be read: %w: %w", root, err,
			hypervisor.Invalid)
	}
	tree := etree.NewDocument()
	tree.ReadSettings.PreserveDuplicateAttrs = true
	if err := tree.ReadFromString(text); err != nil {
		return nil, fmt.Errorf("XML of a libvirt %s cannot be read: %w: %w", root, err,
			hypervisor.Invalid)
	}
	roots := tree.ChildElements()
	if len(roots) != 1 || roots[0].Tag != root || roots[0].Space != "" && root == Domain {
		return nil, fmt.Errorf("XML is not that of a libvirt %s: its root has to be one <%s>: %w",
			root, root, hypervisor.Invalid)
	}
	d := &Document{Root: roots[0], tokens: tree.Child, read: map[etree.Token]origin{}}
	for _, t := range d.tokens {
		pieces = d.remember(t, pieces)
	}
	return d, nil
}

// split returns the text of every token, in order. An element has two, of which
// the second is empty if the first is all of it.
func split(text string) ([]string, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxText)
	}
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("its encoding has to be UTF-8, is %s", backend.Quote(charset))
	}
	var pieces []string
	for depth, from := 0, int64(0); ; {
		token, err := decoder.RawToken()
		switch token.(type) {
		case nil:
			if errors.Is(err, io.EOF) {
				return pieces, nil
			}
			return nil, err
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.Directive:
			return nil, errors.New("it has a document type, and no domain has one")
		}
		if depth > maxDepth {
			return nil, fmt.Errorf("its elements are nested more than %d deep", maxDepth)
		}
		end := decoder.InputOffset()
		pieces = append(pieces, text[from:end])
		from = end
	}
}

// remember keeps what t and all below it were read from: the first of the pieces.
// It returns the rest.
func (d *Document) remember(t etree.Token, pieces []string) []string {
	from := origin{open: pieces[0]}
	pieces = pieces[1:]
	switch t := t.(type) {
	case *etree.Element:
		from.attrs = slices.Clone(t.Attr)
		for _, below := range t.Child {
			pieces = d.remember(below, pieces)
		}
		from.close, pieces = pieces[0], pieces[1:]
	case *etree.CharData:
		from.data = t.Data
	}
	d.read[t] = from
	return pieces
}

// String returns the XML.
func (d *Document) String() string {
	var b strings.Builder
	for _, t := range d.tokens {
		d.write(&b, t)
	}
	return b.String()
}

// text returns the XML of a single element.
func (d *Document) text(e *etree.Element) string {
	var b strings.Builder
	d.write(&b, e)
	return b.String()
}

func (d *Document) write(b *strings.Builder, t etree.Token) {
	from, known := d.read[t]
	switch t := t.(type) {
	case *etree.Element:
		d.writeElement(b, t, from)
	case *etree.CharData:
		if known && t.Data == from.data {
			b.WriteString(from.open)
			return
		}
		escaper.WriteString(b, t.Data)
	default:
		if known {
			b.WriteString(from.open)
			return
		}
		t.WriteTo(b, &etree.WriteSettings{})
	}
}

func (d *Document) writeElement(b *strings.Builder, e *etree.Element, from origin) {
	open := strings.TrimSuffix(from.open, "/>")
	open = strings.TrimSuffix(open, ">")
	if from.open == "" || !slices.EqualFunc(e.Attr, from.attrs, sameAttr) {
		open = "<" + e.FullTag()
		for _, a := range e.Attr {
			open += " " + a.FullKey() + "='" + attrEscaper.Replace(a.Value) + "'"
		}
	}
	b.WriteString(open)
	if len(e.Child) == 0 && from.close == "" {
		b.WriteString("/>")
		return
	}
	b.WriteString(">")
	for _, below := range e.Child {
		d.write(b, below)
	}
	if from.close == "" {
		from.close = "</" + e.FullTag() + ">"
	}
	b.WriteString(from.close)
}

func sameAttr(a, b etree.Attr) bool {
	return a.Space == b.Space && a.Key == b.Key && a.Value == b.Value
}

// The escapers write text, and values of attributes in libvirt's single quotes. Blanks
// that a parser would turn into others are spelled out.
var (
	escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")

	attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;",
		"\r", "&#xD;", "\n", "&#xA;", "\t", "&#x9;")
)

// fragment returns the element that a short XML text is.
func fragment(text string) (*etree.Element, error) {
	tree := etree.NewDocument()
	if err := tree.ReadFromString(text); err != nil {
		return nil, fmt.Errorf("%s is no element: %w: %w", backend.Quote(text), err, hypervisor.Invalid)
	}
	tree.Unindent()
	return tree.Root(), nil
}

// children returns the elements in e of that name which are libvirt's own.
func children(e *etree.Element, tag string) []*etree.Element {
	if e == nil {
		return nil
	}
	return slices.DeleteFunc(e.ChildElements(), func(c *etree.Element) bool {
		return c.Tag != tag || c.Space != "" || c.NamespaceURI() != ""
	})
}

// child returns the first of [children]; nil if there is none. The path may go
// deeper.
func child(e *etree.Element, path ...string) *etree.Element {
	for _, tag := range path {
		all := children(e, tag)
		if len(all) == 0 {
			return nil
		}
		e = all[0]
	}
	return e
}

// Attr returns the value of an attribute of e, which may be nil; "" if it has none.
func Attr(e *etree.Element, key string) string {
	if e != nil {
		for _, a := range e.Attr {
			if a.Space == "" && a.Key == key {
				return a.Value
			}
		}
	}
	return ""
}

// textIn returns the text in e, which may be nil, without the blanks around it.
func textIn(e *etree.Element) string {
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.Text())
}

// ensure returns the child of that name, and makes it if there is none.
func ensure(e *etree.Element, tag string) *etree.Element {
	if c := child(e, tag); c != nil {
		return c
	}
	c := etree.NewElement(tag)
	add(e, c)
	return c
}

// add puts c behind the other elements in e, indented like them.
func add(e, c *etree.Element) {
	elements := e.ChildElements()
	if len(elements) == 0 {
		around := indentOf(e)
		for len(e.Child) > 0 && blank(e.Child[0]) {
			e.RemoveChildAt(0)
		}
		if around == "" {
			e.AddChild(c)
			return
		}
		e.AddChild(etree.NewText(around + "  "))
		e.AddChild(c)
		e.AddChild(etree.NewText(around))
		return
	}
	last := elements[len(elements)-1]
	at := last.Index() + 1
	if indent := indentOf(last); indent != "" {
		e.InsertChildAt(at, etree.NewText(indent))
		at++
	}
	e.InsertChildAt(at, c)
}

// remove takes e out of its parent, with the indentation before it.
func remove(e *etree.Element) {
	parent := e.Parent()
	at := e.Index()
	parent.RemoveChildAt(at)
	if at > 0 && blank(parent.Child[at-1]) {
		parent.RemoveChildAt(at - 1)
	}
}

// replace puts c into the place of e.
func replace(e, c *etree.Element) {
	parent := e.Parent()
	at := e.Index()
	parent.RemoveChildAt(at)
	parent.InsertChildAt(at, c)
}

// indentOf returns the blanks before e: a line end and an indentation.
func indentOf(e *etree.Element) string {
	parent := e.Parent()
	if parent == nil || e.Index() == 0 {
		return ""
	}
	if before := parent.Child[e.Index()-1]; blank(before) {
		return before.(*etree.CharData).Data
	}
	return ""
}

func blank(t etree.Token) bool {
	c, ok := t.(*etree.CharData)
	return ok && strings.TrimSpace(c.Data) == ""
}

// Set changes an attribute in its place, or adds it.
func Set(e *etree.Element, key, value string) {
	for i, a := range e.Attr {
		if a.Space == "" && a.Key == key {
			e.Attr[i].Value = value
			return
		}
	}
	e.CreateAttr(key, value)
}

// New returns an element with attributes: names and values in turn.
func New(tag string, attributes ...string) *etree.Element {
	e := etree.NewElement(tag)
	for i := 0; i < len(attributes); i += 2 {
		e.CreateAttr(attributes[i], attributes[i+1])
	}
	return e
}
