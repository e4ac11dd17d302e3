/** An engine whose calls are overheard: what the machine answers is taken down on its way to the driver. */
import type { Engine, EngineCall } from "../driver/engine.js";

/** Who listens. */
export interface Heard {
  /** What the machine answered and no step has looked at. */
  told: unknown[];
  /** What it answered to the first item that came last. */
  first?: unknown;
  native?: EngineCall;
  /** Answers of `native` that the driver had without asking it, and will ask it for if the second attempt fails, too. */
  ahead: number;
}

/** The engine, with what its calls answer taken down for whoever listens. */
export function overheard(engine: Engine, lane: () => Heard): Engine {
  const listening = (call: EngineCall, to = lane()): EngineCall => {
    to.native = call;
    const tell = (answer: string): string => {
      if (to.ahead > 0) to.ahead -= 1;
      else to.told.push(JSON.parse(answer));
      return answer;
    };
    const own: Partial<EngineCall> & { free(): void } = {
      // Its records are looked at after the driver has let go of it.
      free() {},
      begin: (at) => tell(call.begin(at)),
      onOutcome: (at, attempt, outcome) => tell(call.onOutcome(at, attempt, outcome)),
      cancel: (at) => tell(call.cancel(at)),
      firstItem: (at, attempt) => {
        const answer = call.firstItem(at, attempt);
        to.first = JSON.parse(answer);
        return answer;
      },
      hedge: (at) => tell(call.hedge(at)),
    };
    return new Proxy(call, {
      get(_, name: keyof EngineCall) {
        return own[name] ?? call[name].bind(call);
      },
    });
  };
  class Overheard {
    constructor(...made: ConstructorParameters<typeof engine.Call>) {
      // biome-ignore lint/correctness/noConstructorReturn: what is made is the listening call
      return listening(new engine.Call(...made)) as unknown as Overheard;
    }
    static started = (...made: Parameters<typeof engine.Call.started>) => listening(engine.Call.started(...made));
    static restore = (...made: Parameters<typeof engine.Call.restore>) => engine.Call.restore(...made);
  }
  return { ...engine, Call: Overheard as never };
}
