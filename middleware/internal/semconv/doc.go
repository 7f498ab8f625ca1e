// Package semconv has every name that tracing and metrics use, in one place: OpenTelemetry's messaging
// conventions are still in development, and whoever follows a new version of them does it here. The names are
// written out, so that a search finds them, and a test compares them with the conventions' own package.
//
// # Promised
//
// Every constant of this package stands in docs/telemetry.md, and every name there with the project's prefix is
// one of them. The class of an error, ErrorType, is a short word or the name of a Go type, never an error's text.
//
// # Not promised
//
// Names of the conventions change with them, together with SchemaURL. Names of the project's own, which begin
// with messaging.zq, follow the project's versions.
package semconv
