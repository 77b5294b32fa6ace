/**
 * Faults that no test permits: a violation of the content security policy, a logged error, an
 * exception, a request to another origin, a script that runs from a name.
 */
import { expect, type BrowserContext, type Page } from "@playwright/test";

export class Watch {
  private readonly faults: string[] = [];
  private readonly permitted: RegExp[] = [];

  constructor(
    private readonly context: BrowserContext,
    /** The permitted origins. */
    readonly origins: string[],
  ) {}

  async begin(): Promise<void> {
    await this.context.exposeFunction("granarySaw", (fault: string) => this.faults.push(fault));
    await this.context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.granarySaw(
          `content security policy: ${event.violatedDirective} ${event.blockedURI}`,
        );
      });
    });
    this.context.on("page", (page) => this.watchPage(page));
    for (const page of this.context.pages()) this.watchPage(page);
  }

  private watchPage(page: Page): void {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        this.faults.push(`console: ${message.text()} ${message.location().url}`);
      }
    });
    page.on("pageerror", (cause) => this.faults.push(`thrown: ${cause.message}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (!this.origins.includes(url.origin) && !["data:", "blob:"].includes(url.protocol)) {
        this.faults.push(`another origin: ${request.url()}`);
      }
    });
  }

  /**
   * Permits messages that a test causes itself, such as the browser's error for an answer of 409.
   */
  permit(...patterns: RegExp[]): void {
    this.permitted.push(...patterns);
  }

  async end(): Promise<void> {
    for (const page of this.context.pages()) {
      const scriptResult = await page.evaluate(() => window.hacked);
      if (scriptResult !== undefined) this.faults.push(`a name ran as a script on ${page.url()}`);
    }
    const unpermitted = this.faults.filter(
      (fault) => !this.permitted.some((pattern) => pattern.test(fault)),
    );
    expect(unpermitted, "what the page must never do").toEqual([]);
  }
}
