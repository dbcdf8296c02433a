package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
)

var (
	//go:embed mailgate-countdown.js
	countdownScript []byte
	//go:embed mailgate-countdown.d.ts
	countdownTypes []byte
)

// A Component is a file that other sites or tools load, ready to be served.
type Component struct {
	Plain []byte // as it is, with its comments
	Gzip  []byte // the same for clients that accept gzip, as every browser does
	ETag  string // changes with the file, and is quoted as the header wants it
}

// Countdown returns the custom element <mailgate-countdown>. Its interface is described in
// mailgate-countdown.d.ts. It compresses on each call, so call it once.
func Countdown() (Component, error) { return component(countdownScript) }

// CountdownTypes returns mailgate-countdown.d.ts, for editors and compilers.
func CountdownTypes() (Component, error) { return component(countdownTypes) }

func component(text []byte) (Component, error) {
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return Component{}, fmt.Errorf("web: compressing the countdown: %w", err)
	}
	if _, err := writer.Write(text); err != nil {
		return Component{}, fmt.Errorf("web: compressing the countdown: %w", err)
	}
	if err := writer.Close(); err != nil {
		return Component{}, fmt.Errorf("web: compressing the countdown: %w", err)
	}
	sum := sha256.Sum256(text)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return Component{bytes.Clone(text), small.Bytes(), etag}, nil
}
