-- Lamport's fast mutual exclusion for four processes.
const
  N: 4;
  nobody: 4;
type
  process: 0 .. N - 1;
  anybody: 0 .. N;
  location: enum { NCS, q1, q2, q22, p0, q3, q4, q5, CS, e1 };
var
  at: array [process] of location;
  j: array [process] of 0 .. N;
  b: array [process] of boolean;
  x: anybody;
  y: anybody;

ruleset p: process do
  rule "want" at[p] = NCS ==> at[p] := q1; b[p] := true; end;
  rule "sign x" at[p] = q1 ==> at[p] := q2; x := p; end;
  rule "taken" at[p] = q2 & y != nobody ==> at[p] := q22; b[p] := false; end;
  rule "free" at[p] = q2 & y = nobody ==> at[p] := p0; end;
  rule "again" at[p] = q22 & y = nobody ==> at[p] := NCS; end;
  rule "sign y" at[p] = p0 ==> at[p] := q3; y := p; end;
  rule "alone" at[p] = q3 & x = p ==> at[p] := CS; end;
  rule "rival" at[p] = q3 & x != p ==> at[p] := q4; b[p] := false; j[p] := 0; end;
  rule "look" at[p] = q4 & j[p] < N & !b[j[p]] ==> j[p] := j[p] + 1; end;
  rule "looked" at[p] = q4 & j[p] = N ==> at[p] := q5; end;
  rule "won" at[p] = q5 & y = p ==> at[p] := CS; end;
  rule "lost" at[p] = q5 & y = nobody ==> at[p] := NCS; end;
  rule "leave" at[p] = CS ==> at[p] := e1; y := nobody; end;
  rule "done" at[p] = e1 ==> at[p] := NCS; b[p] := false; end;
end;

startstate
  for p: process do
    at[p] := NCS; j[p] := 0; b[p] := false;
  end;
  x := nobody; y := nobody;
end;
