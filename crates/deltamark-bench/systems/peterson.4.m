-- Peterson's mutual exclusion for four processes: they climb three floors, and the last to come to
-- a floor waits there.
const N: 4;
type
  process: 0 .. N - 1;
  location: enum { NCS, wait, q2, q3, CS };
var
  at: array [process] of location;
  j: array [process] of 0 .. N;
  k: array [process] of 0 .. N;
  pos: array [process] of 0 .. N;
  step: array [process] of process;

ruleset p: process do
  rule "begin" at[p] = NCS ==> at[p] := wait; j[p] := 1; end;
  rule "climb" at[p] = wait & j[p] < N ==> at[p] := q2; pos[p] := j[p]; end;
  rule "enter" at[p] = wait & j[p] = N ==> at[p] := CS; end;
  rule "sign" at[p] = q2 ==> at[p] := q3; step[j[p] - 1] := p; k[p] := 0; end;
  rule "look" at[p] = q3 & k[p] < N & (k[p] = p | pos[k[p]] < j[p]) ==> k[p] := k[p] + 1; end;
  rule "next" at[p] = q3 & (step[j[p] - 1] != p | k[p] = N) ==> at[p] := wait; j[p] := j[p] + 1; end;
  rule "leave" at[p] = CS ==> at[p] := NCS; pos[p] := 0; end;
end;

startstate
  for p: process do
    at[p] := NCS; j[p] := 0; k[p] := 0; pos[p] := 0; step[p] := 0;
  end;
end;
