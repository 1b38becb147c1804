-- Fischer's timed mutual exclusion for seven processes, time in steps.
const
  N: 7;
  never: 4;
type
  process: 0 .. N - 1;
  location: enum { NCS, try, wait, CS };
var
  at: array [process] of location;
  t: array [process] of 0 .. never;
  id: 0 .. N;

rule "tick" forall p: process do t[p] != 0 end ==>
  for p: process do
    if t[p] != never then t[p] := t[p] - 1; end;
  end;
end;

ruleset p: process do
  rule "want" at[p] = NCS & id = 0 ==> at[p] := try; t[p] := 2; end;
  rule "sign" at[p] = try ==> at[p] := wait; t[p] := 3; id := p + 1; end;
  rule "waited" at[p] = wait & t[p] = 0 ==> t[p] := never; end;
  rule "won" at[p] = wait & t[p] = never & id = p + 1 ==> at[p] := CS; end;
  rule "lost" at[p] = wait & t[p] = never & id != p + 1 ==> at[p] := NCS; end;
  rule "leave" at[p] = CS ==> at[p] := NCS; id := 0; end;
end;

startstate
  for p: process do
    at[p] := NCS; t[p] := never;
  end;
  id := 0;
end;
