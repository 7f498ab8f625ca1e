package web

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Traced makes a span of each request, a child of the caller's by the header traceparent. A service would use
// otelhttp, which does the same and more.
func Traced(traces trace.TracerProvider, next http.Handler) http.Handler {
	tracer := traces.Tracer("example.com/web")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		r = r.WithContext(ctx)
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(a, r)
		if method, route, ok := strings.Cut(r.Pattern, " "); ok { // the mux has found one
			span.SetName(r.Pattern)
			span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route))
		}
		span.SetAttributes(semconv.HTTPResponseStatusCode(a.status))
		if a.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// answer remembers the status.
type answer struct {
	http.ResponseWriter

	status int
}

// WriteHeader remembers the status and passes it on.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
