// The values of the program on the page: computed here, or recorded by Python.

class RunState {
  constructor(run) {
    this.run = run;
    this.values = new Map(); // local -> array
    this.error = "";
    this.isLive = false;
    if (run.reason) return;
    this.interpreter = new Interpreter(run.parts);
    this.missing = [...this.interpreter.missing(run.code)].sort();
    try {
      this.given = run.args.map(arrayFrom);
    } catch (error) {
      if (!this.missing.length) this.missing.push(error.message);
    }
    this.isLive = !this.missing.length;
    if (this.isLive) this.reset();
    else this.takeRecorded();
  }

  // Compute with the arguments as Python gave them.
  reset() {
    this.args = this.given.map((x) => ({ ...x, data: x.data.slice() }));
    this.compute();
    this.first = new Map(this.values);
  }

  // Compute all values; those before an error stay.
  compute() {
    const { code } = this.run;
    this.values = new Map(program.params.map((local, i) => [local, this.args[i]]));
    this.error = "";
    let done = 0;
    try {
      this.interpreter.trips = 0;
      this.interpreter.run(code, this.args, (i, results) => {
        const row = content.rows[program.rows[i]];
        results.forEach((result, k) => this.values.set(row[BINDERS][k], result));
        done = i + 1;
      });
    } catch (error) {
      const row = content.rows[program.rows[done]];
      this.error = `${row ? bindText(row) : "return"}: ${error.message}`;
      if (error instanceof Unsupported) this.error += ", which this page does not have";
    }
  }

  // The values that Python recorded, as far as they are stored and can be shown.
  takeRecorded() {
    const take = (local, json) => {
      try {
        this.values.set(local, arrayFrom(json));
      } catch {
        // of a dtype that the page does not have
      }
    };
    program.params.forEach((local, i) => take(local, this.run.args[i]));
    (this.run.values || []).forEach((results, i) => {
      const binders = content.rows[program.rows[i]][BINDERS];
      (results || []).forEach((json, k) => take(binders[k], json));
    });
  }

  // What the page says about where the values come from.
  note() {
    const { note, why } = this.run;
    if (this.isLive) return `The program runs in this page. ${note}`;
    const missing = `This page does not have ${this.missing.join(", ")}.`;
    if (this.run.values) return `${missing} It shows the values that Python recorded. ${note}`;
    return `${missing} There are no recorded values. ${why}`;
  }
}
