// Package trace records what a request takes its time for, as spans of OpenTelemetry.
//
// A context carries the span of its request. Without one, or with one that is not sampled, nothing here
// costs an allocation. Spans and events have fixed names and words only: no address, no code, no text of
// an error.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const name = "mailgate"

// Tracer sends spans to a collector, in the background: while that does not answer, spans are dropped. A nil
// Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open makes the Tracer of the variables OTEL_* of the process, or returns nil if they name no collector. It asks no
// collector, and logs once a minute at most why spans are dropped.
func Open(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("preparing traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", name), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("preparing traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var lastLogged atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if now, last := time.Now().Unix(), lastLogged.Load(); now-last >= 60 && lastLogged.CompareAndSwap(last, now) {
			log.Warn("traces are dropped, as their collector does not take them; this is said once a minute", "cause", err.Error())
		}
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Tracer{provider, provider.Tracer(name)}, nil
}

// Close sends the spans that are left, until ctx ends.
func (t *Tracer) Close(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx) // the error handler has said it
	}
}

// Begin starts the span of a request, which began a while ago. It is part of the caller's trace where header
// returns a traceparent.
func (t *Tracer) Begin(ctx context.Context, request string, began time.Time, header func(name string) string) context.Context {
	if t == nil {
		return ctx
	}
	caller := propagation.MapCarrier{}
	for _, field := range (propagation.TraceContext{}).Fields() {
		caller.Set(field, header(field))
	}
	ctx = propagation.TraceContext{}.Extract(ctx, caller)
	ctx, _ = t.tracer.Start(ctx, request, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer))
	return ctx
}

// Span is a part of a request. The zero Span records nothing.
type Span struct{ span trace.Span }

// Of returns the span that a context carries.
func Of(ctx context.Context) Span { return Span{trace.SpanFromContext(ctx)} }

// Start starts a part of the span that the context carries.
func Start(ctx context.Context, part string) (context.Context, Span) {
	whole := trace.SpanFromContext(ctx)
	if !whole.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := whole.TracerProvider().Tracer(name).Start(ctx, part)
	return ctx, Span{span}
}

// Event adds a step to the span of a context, with the code that answered it; 0 is none.
func Event(ctx context.Context, step string, code int) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(step, trace.WithAttributes(attribute.Int("code", code)))
	}
}

// On reports whether the span records.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Set adds a word to a span, unless it is empty.
func (s Span) Set(name, word string) {
	if word != "" && s.On() {
		s.span.SetAttributes(attribute.String(name, word))
	}
}

// End ends a span with its outcome.
func (s Span) End(outcome string) {
	s.Set("outcome", outcome)
	if s.span != nil {
		s.span.End()
	}
}

// TraceID returns the id of the trace for the log, or "".
func (s Span) TraceID() string {
	if s.span == nil || !s.span.SpanContext().IsValid() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}
