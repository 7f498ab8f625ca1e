package main

import (
	"math/rand/v2"
	"strings"
)

const customerCount = 200

// customer is a buyer and the currency of their country.
type customer struct {
	name     string
	currency string
	orders   int // weight: how often they buy
}

// odd are names that a careless queue, table or shell would trip over. Escapes spell what an editor would hide.
var odd = []string{
	"null", "undefined", "NaN", "0", "-1", "true", "{}", "{orders}", "zq:{orders}:ready", "a:b:c", "[a-z]*?",
	"100%", "%s%n%d", "O'Brien", "d\u2019Artagnan", "Robert'); DROP TABLE orders;--", `"Bobby" Quoted`, `back\slash`,
	"Jos\u00e9 Garc\u00eda",   // composed (NFC) …
	"Jose\u0301 Garci\u0301a", // … and decomposed (NFD): looks the same, is another customer
	"\U0001F469\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 Familie Jansen", // one glyph of four, joined
	"\U0001F3F3\ufe0f\u200d\U0001F308 Caf\u00e9", "\U0001F44D\U0001F3FD",
	"李小龙", "山田 太郎", "김민준", "นภา ศรีสุข", "नरेन्द्र शर्मा", "Nguyễn Thị Minh Khai",
	"محمد الأمين", "שרה כהן", "\u200fشركة النور (Dubai)\u200e", "Ελένη Παπαδοπούλου", "Дмитрий Иванов", "İpek Işık", "Łukasz Żółć",
	"Groß & Söhne GmbH", "<b>Bold</b>", "  two  spaces ", "non\u00a0breaking", "ANNA MARIA", "anna maria", "１２３",
	"Z\u0338a\u0337l\u0336g\u0335o\u0334", "\ufb01ne \ufb02owers", "#hashtag", "//comment", ",comma,;semicolon", "=SUM(A1:A9)", "$HOME", "`id`",
	"Half/Half", "user@example.com", "+49 170 0000000", "X",
	"Hubert Blaine " + strings.Repeat("Wolfe", 46) + "+585, Sr.", // 252 bytes; a key may have 256
	strings.Repeat("寿", 85),                                      // 255 bytes of three-byte characters
}

var (
	first = []string{
		"Anna", "Ben", "Chloé", "David", "Eva", "Finn", "Grace", "Hiro", "Ines", "Jakub", "Karin", "Liam", "Mia",
		"Noah", "Olga", "Pavel", "Quentin", "Rosa", "Søren", "Théo", "Ulla", "Viktor", "Wanda", "Yusuf", "Zoë",
	}
	last = []string{
		"Almeida", "Bauer", "Carter", "Dubois", "Eriksson", "Fischer", "González", "Horvat", "Ito", "Jensen",
		"Kowalski", "Lindqvist", "Müller", "Novák", "Okafor", "Petrov", "Quinn", "Rossi", "Schmidt", "Tanaka",
		"Usman", "van der Berg", "Weber", "Yilmaz", "Zimmermann",
	}
	// Most buyers of this shop pay in euros.
	currencies = []string{"EUR", "EUR", "EUR", "EUR", "EUR", "USD", "USD", "GBP", "CHF", "SEK", "PLN", "JPY", "KWD"}
)

// customers returns all buyers, the odd ones among the others, each name once.
func customers(rng *rand.Rand) []customer {
	names := append([]string(nil), odd...)
	taken := make(map[string]bool)
	for len(names) < customerCount {
		name := first[rng.IntN(len(first))] + " " + last[rng.IntN(len(last))]
		if !taken[name] {
			taken[name] = true
			names = append(names, name)
		}
	}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	buyers := make([]customer, len(names))
	for i, name := range names {
		// Most buy once or twice, a few all the time.
		weight := 1 + rng.IntN(3)
		if i%17 == 0 {
			weight = 12
		}
		buyers[i] = customer{name: name, currency: currencies[rng.IntN(len(currencies))], orders: weight}
	}
	return buyers
}
