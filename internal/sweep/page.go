package sweep

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

//go:embed page
var page embed.FS

//go:embed echarts/echarts.min.js.gz
var packedCharts []byte

// version is that of the charts; see echarts/VERSION.
const version = "6.1.0"

// scripts are the parts of the page's own script, in the order in which they run.
var scripts = []string{"model.js", "dom.js", "charts.js", "timeline.js", "main.js"}

// WriteHTML writes the page. The error is the writer's.
func (d *ReportDocument) WriteHTML(w io.Writer) error {
	text, err := d.page()
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	_, err = io.WriteString(w, text)
	return err
}

func (d *ReportDocument) page() (string, error) {
	charts, err := charts()
	if err != nil {
		return "", err
	}
	// The encoder writes <, > and & as escapes: nothing in it can end the script.
	data, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	style, script := part("style.css"), script()
	return strings.NewReplacer(
		"{{policy}}", policy(style, charts, script),
		"{{title}}", html.EscapeString(d.Scenario)+" · godwit",
		"{{version}}", version,
		"{{style}}", style,
		"{{document}}", string(data),
		"{{echarts}}", charts,
		"{{script}}", script,
	).Replace(part("index.html")), nil
}

// policy allows what is in the page, by its sum, and nothing else: no network, no eval, no
// style in the markup.
func policy(style string, scripts ...string) string {
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return " 'sha256-" + base64.StdEncoding.EncodeToString(s[:]) + "'"
	}
	var allowed strings.Builder
	for _, s := range scripts {
		allowed.WriteString(sum(s))
	}
	return "default-src 'none'; script-src" + allowed.String() + "; style-src" + sum(style) +
		"; base-uri 'none'; form-action 'none'"
}

// script returns the page's own script, in a scope of its own.
func script() string {
	var s strings.Builder
	s.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		s.WriteString(part(name))
	}
	s.WriteString("})();\n")
	return s.String()
}

// part returns a file of the page; that it is there is known when this is compiled.
func part(name string) string {
	text, err := page.ReadFile("page/" + name)
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return string(text)
}

// charts returns the library of the charts as its makers publish it.
func charts() (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(packedCharts))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}
